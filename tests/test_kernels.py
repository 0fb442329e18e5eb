"""Every program of kernels/, fused and unfused: the same bits, and right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import KERNELS, check_fused_equals_unfused


@pytest.mark.filterwarnings("error::pyfuser.WorkunitWarning")
@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_fused_equals_unfused(path: Path) -> None:
    # The second run meets what the first left behind, and replays its plan.
    check_fused_equals_unfused(path, runs=2)
