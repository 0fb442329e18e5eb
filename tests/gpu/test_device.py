"""GPU kernels compute what the reference interpreter does: on a GPU, where there is one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.gpu.compilers import MISSING_NVRTC, nvrtc
from tests.gpu.device import MISSING_GPU, OnDevice, architecture
from tests.gpu.emulator import Emulated
from tests.gpu.team_cases import TEAMS
from tests.gpu.test_emulated import CLOSE, EXACT, SUMS
from tests.gpu.test_teams import UNEVEN

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(architecture() is None, reason=MISSING_GPU),
    pytest.mark.skipif(nvrtc() is None, reason=MISSING_NVRTC),
]


SAME = {**EXACT, **CLOSE, **TEAMS}
ORDERED = {**SUMS, **UNEVEN}


@pytest.fixture(scope="module")
def on_device() -> OnDevice:
    return OnDevice({**SAME, **ORDERED})


@pytest.mark.parametrize("name", SAME)
def test_device_equals_interpreted(name: str, on_device: OnDevice) -> None:
    expected, results = SAME[name].interpreted()
    arguments, actual = on_device.run(name)
    assert actual == results
    for array, reference in zip(arguments, expected, strict=True):
        if name.startswith("functions"):  # the last digits are the library's
            single = np.asarray(reference).dtype in ("float32", "complex64")
            np.testing.assert_allclose(array, reference, rtol=1e-5 if single else 1e-13)
        else:
            np.testing.assert_array_equal(array, reference)


@pytest.mark.parametrize("name", ORDERED)
def test_sums_have_the_bits_of_the_emulator(name: str, on_device: OnDevice, tmp_path: Path) -> None:
    expected, results = Emulated({name: ORDERED[name]}, tmp_path).run(name)
    for _ in range(3):
        arguments, actual = on_device.run(name)
        assert actual == results
        for array, reference in zip(arguments, expected, strict=True):
            np.testing.assert_array_equal(array, reference)
