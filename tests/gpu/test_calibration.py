"""The cost model's constants, measured on a GPU (or its stand-in)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pyfuser
from pyfuser.calibration import measure_gpu
from pyfuser.cli import main
from pyfuser.support.settings import SETTINGS
from pyfuser.tuning import gpu as tuning_gpu
from pyfuser.tuning import host as tuning_host


@pytest.fixture
def quick(cupy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Measurements of little, kept in a folder of their own."""
    settings = replace(SETTINGS, directory=tmp_path, calibration=True)
    monkeypatch.setattr(tuning_gpu, "SETTINGS", settings)
    for name, value in (
        ("ROUNDS", 2),
        ("LAUNCHES", 3),
        ("LARGEST", 1 << 15),
        ("ARRAYS", (2, 4)),
    ):
        monkeypatch.setattr(measure_gpu, name, value)
    tuning_gpu.known.cache_clear()
    yield tmp_path
    tuning_gpu.known.cache_clear()


def test_a_calibration_is_kept_for_its_gpu(quick: Path) -> None:
    found = pyfuser.calibrate("Cuda")
    assert found.path == tuning_gpu.calibration_file()
    assert found.measured == tuning_host.LIMITS.keys()
    assert found.machine.stores == 1.0
    tuning_gpu.known.cache_clear()
    assert tuning_gpu.known() == found
    name = tuning_gpu.name()
    tuning_gpu.use("another", "")
    assert tuning_gpu.known().machine == tuning_gpu.DEFAULT
    tuning_gpu.use(name, "")


def test_command(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--space", "Cuda"]) == 0
    assert "GB/s (measured)" in capsys.readouterr().out
    assert main(["calibrate", "--space", "Moon"]) == 2
    assert "Moon" in capsys.readouterr().err
