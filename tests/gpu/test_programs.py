"""Programs of kernels/ on a GPU (or its stand-in): fused equals unfused, and is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gpu.conftest import real_cupy
from tests.programs import KERNELS, check_fused_equals_unfused

ON_STAND_IN = (
    *("adam_optimizer", "black_scholes", "boltzmann", "cg_poisson", "diffusion3d", "euler1d"),
    *("fdtd", "kmeans", "layer_norm", "logistic_regression", "many_tiny", "particles"),
    *("resampling", "vertical_diffusion"),
)
"""Those that have all that the kernels of the others are made of (test_compiles.py)."""
RUN = [path for path in KERNELS if real_cupy() or path.stem in ON_STAND_IN]


@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
def test_fused_equals_unfused(path: Path, cupy: Any) -> None:
    check_fused_equals_unfused(path, runs=3)
