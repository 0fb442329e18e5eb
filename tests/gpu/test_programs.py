"""Every program of kernels/ on a GPU (or its stand-in): fused equals unfused, and is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pyfuser
from pyfuser.compare import serve
from pyfuser.compare.summary import difference
from pyfuser.counters import COUNTERS

KERNELS = sorted((Path(__file__).parents[2] / "kernels").glob("*.py"))
RUNS = 3


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_fused_equals_unfused(path: Path, cupy: Any) -> None:
    module = serve.load(path)
    size = module.SIZES["small"]

    def results(mode: Any) -> tuple[dict[str, Any], int]:
        with mode():
            state = module.setup(size)
            launches = COUNTERS.launches
            for _ in range(RUNS):
                module.run(state)
                pyfuser.sync()
            launches = COUNTERS.launches - launches
            module.check(state, size, RUNS)
            return module.outputs(state), launches

    unfused, launches = results(pyfuser.unfused)
    fused, fused_launches = results(pyfuser.fusing)
    assert difference(unfused, fused).identical
    assert fused_launches < launches, "nothing was fused"
