"""What the latest flush did, in a form that tests can compare."""

from __future__ import annotations

import pyfuser


def groups() -> list[str]:
    """The kernels of the latest flush, each as the names of its calls: `["inc+copy", "rev"]`."""
    return ["+".join(c.name for c in g.calls) for g in pyfuser.explain().groups]


def reasons() -> dict[str, str]:
    """Why calls of the latest flush were not fused: `{"inc|rev": "flow"}`."""
    return {f"{r.first.name}|{r.second.name}": r.reason for r in pyfuser.explain().rejections}
