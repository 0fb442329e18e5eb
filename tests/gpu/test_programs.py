"""Every program of kernels/ on a GPU (or its stand-in): fused equals unfused, and is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.programs import KERNELS, check_fused_equals_unfused


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_fused_equals_unfused(path: Path, cupy: Any) -> None:
    check_fused_equals_unfused(path, runs=3)
