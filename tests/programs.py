"""The programs of kernels/ as tests run them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyfuser
from pyfuser.compare import serve
from pyfuser.compare.summary import difference
from pyfuser.support.counters import COUNTERS

KERNELS = sorted((Path(__file__).parents[1] / "kernels").glob("*.py"))


def check_fused_equals_unfused(path: Path, runs: int) -> None:
    """A program's small size, fused and unfused: the same bits, right, and fewer launches."""
    module = serve.load(path)
    size = module.SIZES["small"]

    def results(mode: Any) -> tuple[dict[str, Any], int]:
        with mode():
            state = module.setup(size)
            launches = COUNTERS.launches
            for _ in range(runs):
                module.run(state)
                pyfuser.sync()
            launches = COUNTERS.launches - launches
            module.check(state, size, runs)
            return module.outputs(state), launches

    unfused, launches = results(pyfuser.unfused)
    fused, fused_launches = results(pyfuser.fusing)
    assert difference(unfused, fused).identical
    assert fused_launches < launches, "nothing was fused"
