"""The plans of kernels/ and their fused source, as last read and found right.

Their ir and the text of every target are held by `tests/corpus`, as digests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import pyfuser
from pyfuser.compare import serve
from pyfuser.report import Explanation
from pyfuser.report.model import Cost
from pyfuser.runtime.session import SESSION

ROOT = Path(__file__).parents[1]
KERNELS = sorted((ROOT / "kernels").glob("*.py"))
FLUSHES = 4  # as many of a program's last flushes are shown


def timeless(report: Explanation) -> Explanation:
    """The report without what another run, or another machine, has otherwise."""
    groups = (replace(group, cost=_modelled(group.cost), vectors=None) for group in report.groups)
    sweeps = (replace(sweep, cost=_modelled(sweep.cost)) for sweep in report.sweeps)
    return replace(report, asked=(), earlier=0, groups=tuple(groups), sweeps=tuple(sweeps))


def _modelled(cost: Cost) -> Cost:
    return replace(cost, measured=None, launches=0)


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_plans_and_fused_kernels(
    path: Path, golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    module = serve.load(path)
    SESSION.flushes.clear()
    state = module.setup(module.SIZES["small"])
    with pyfuser.fusing():
        module.run(state)
    golden(f"plans/{path.stem}.txt", f"{timeless(pyfuser.explain(FLUSHES, source=True))}\n")
