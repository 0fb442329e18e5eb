"""The cost model's constants, measured on a GPU (or its stand-in)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pyfuser
from pyfuser import accelerator, device_calibration, machine
from pyfuser.cli import main
from pyfuser.settings import SETTINGS


@pytest.fixture
def quick(cupy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Measurements of little, kept in a folder of their own."""
    settings = replace(SETTINGS, cache_dir=tmp_path, calibration=True)
    monkeypatch.setattr(accelerator, "SETTINGS", settings)
    for name, value in (
        ("ROUNDS", 2),
        ("LAUNCHES", 3),
        ("LARGEST", 1 << 15),
        ("ARRAYS", (2, 4)),
    ):
        monkeypatch.setattr(device_calibration, name, value)
    accelerator.known.cache_clear()
    yield tmp_path
    accelerator.known.cache_clear()


def test_a_calibration_is_kept_for_its_gpu(quick: Path) -> None:
    found = pyfuser.calibrate("Cuda")
    assert found.path == accelerator.calibration_file()
    assert found.measured == machine.LIMITS.keys()
    assert found.machine.stores == 1.0
    accelerator.known.cache_clear()
    assert accelerator.known() == found
    name = accelerator.name()
    accelerator.use("another", "")
    assert accelerator.known().machine == accelerator.DEFAULT
    accelerator.use(name, "")


def test_command(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--space", "Cuda"]) == 0
    assert "GB/s (measured)" in capsys.readouterr().out
    assert main(["calibrate", "--space", "Moon"]) == 2
    assert "Moon" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("registers", "factor"), [(1, 1.0), (32, 1.0), (128, 1.0), (255, 512 / 257), (0, 1.0)]
)
def test_slowdown(registers: int, factor: float) -> None:
    assert accelerator.slowdown(registers) == factor
