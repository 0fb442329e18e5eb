"""What measurements mean, and that a calibration is kept."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pyfuser
from pyfuser.calibration import measure_host
from pyfuser.calibration.measure_host import ARRAYS, BLOCKS, crowded, edge
from pyfuser.cli import main
from pyfuser.support.errors import CacheError
from pyfuser.support.settings import SETTINGS
from pyfuser.tuning import host as tuning_host
from pyfuser.tuning.cache_sizes import Level, caches
from pyfuser.tuning.host import DEFAULT, LIMITS, known, text_of
from tests.vendors import tune

# --------------------------------------------------------------------------- streams


@pytest.mark.parametrize("streams", ARRAYS[1:-2])
@pytest.mark.parametrize("crowding", [0.02, 0.1])
def test_the_bend_is_found(streams: int, crowding: float) -> None:
    times = [3e-11 * (1.0 + crowding * max(0, n - streams)) for n in ARRAYS]
    assert crowded(ARRAYS, times) == (streams, pytest.approx(crowding))


def test_the_bend_is_found_in_noise() -> None:
    noise = np.random.default_rng(1).normal(1.0, 0.01, len(ARRAYS))
    times = [(1.0 + 0.05 * max(0, n - 12)) * f for n, f in zip(ARRAYS, noise, strict=True)]
    streams, crowding = crowded(ARRAYS, times)
    assert 8 <= streams <= 16
    assert crowding == pytest.approx(0.05, rel=0.4)


@pytest.mark.parametrize("slope", [0.0, -0.01, 0.0005])
def test_what_does_not_slow_down_visibly_is_not_believed(slope: float) -> None:
    times = [1.0 + slope * n for n in ARRAYS]
    assert crowded(ARRAYS, times) == (ARRAYS[-1], DEFAULT.crowding)


# --------------------------------------------------------------------------- cache


def steps(inside: int, times: tuple[float, float] = (1.0, 2.0)) -> list[float]:
    """What blocks take if those up to a size are in cache."""
    return [times[size > inside] for size in BLOCKS]


@pytest.mark.parametrize("size", BLOCKS[:-1])
def test_the_edge_of_a_cache_is_found(size: int) -> None:
    assert edge(BLOCKS, steps(size), None) == size


def test_of_two_edges_the_first_counts() -> None:
    times = [1.0 if n <= 1 << 19 else 1.5 if n <= 1 << 22 else 6.0 for n in BLOCKS]
    assert edge(BLOCKS, times, None) == 1 << 19


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (5 << 18, 5 << 18),  # told exactly: powers of two are all that is measured
        (1 << 21, 1 << 21),
        (1 << 20, 1 << 20),
        (1 << 17, 1 << 17),  # what is told is small: what is beyond belongs to others, too
        (1 << 23, 1 << 20),  # a virtual machine tells more than it gets
    ],
)
def test_what_the_system_tells_counts_unless_it_is_far_less(told: int, expected: int) -> None:
    assert edge(BLOCKS, steps(1 << 20), told) == expected


@pytest.mark.parametrize("times", [None, [1.0] * len(BLOCKS), [1.3] + [1.0] * (len(BLOCKS) - 1)])
def test_no_edge_no_measurement(times: list[float] | None) -> None:
    assert edge(BLOCKS, times, 3 << 19) == 3 << 19
    assert edge(BLOCKS, times, None) is None


# --------------------------------------------------------------------------- what the system tells


def level(root: Path, name: str, **files: str) -> None:
    directory = root / "cpu0" / "cache" / name
    directory.mkdir(parents=True)
    for file, text in files.items():
        (directory / file).write_text(text + "\n")


@pytest.fixture
def cpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    for n in range(8):
        (tmp_path / f"cpu{n}").mkdir()
    (tmp_path / "cpufreq").mkdir()
    return tmp_path


def test_caches_are_shared(cpus: Path) -> None:
    level(cpus, "index0", level="1", type="Data", size="48K", shared_cpu_list="0,4")
    level(cpus, "index1", level="1", type="Instruction", size="32K", shared_cpu_list="0,4")
    level(cpus, "index2", level="2", type="Unified", size="2M", shared_cpu_list="0,4")
    level(cpus, "index3", level="3", type="Unified", size="32768K", shared_cpu_list="0-7")
    assert caches(cpus) == {
        1: Level(4 * 48 << 10, 24 << 10),
        2: Level(8 << 20, 1 << 20),
        3: Level(32 << 20, 4 << 20),
    }


def test_a_thread_that_may_not_run_takes_no_share(
    cpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    level(cpus, "index2", level="2", type="Unified", size="2M", shared_cpu_list="0,4")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    assert caches(cpus) == {2: Level(8 << 20, 2 << 20)}


@pytest.mark.parametrize("broken", [{"size": "much"}, {"shared_cpu_list": ""}, {"level": "two"}])
def test_a_level_that_is_not_told_is_missing(broken: dict[str, str], cpus: Path) -> None:
    level(cpus, "index1", level="1", type="Data", size="32K", shared_cpu_list="0")
    told = {"level": "2", "type": "Unified", "size": "1M", "shared_cpu_list": "0"}
    level(cpus, "index2", **{**told, **broken})
    level(cpus, "index3", level="3")
    assert caches(cpus).keys() == {1}


def test_a_system_without_the_directory(tmp_path: Path) -> None:
    assert caches(tmp_path / "nothing") == {}


# --------------------------------------------------------------------------- end to end


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Measures little, and so badly, but all of it; the calibration is kept in a new directory."""
    settings = replace(SETTINGS, directory=tmp_path / "cache", calibration=True)
    monkeypatch.setattr(tuning_host, "SETTINGS", settings)
    monkeypatch.setattr("pyfuser.cli.SETTINGS", settings)
    for name, value in (
        ("ROUNDS", 4),
        ("LAUNCHES", 5),
        ("LARGEST", 1 << 20),
    ):
        monkeypatch.setattr(measure_host, name, value)
    tune(monkeypatch, agree=1e9, alone=0.0)
    known.cache_clear()
    yield tmp_path / "cache"
    known.cache_clear()


def test_a_calibration_measures_everything_and_is_kept(quick: Path) -> None:
    found = pyfuser.calibrate()
    assert found.measured >= {"launch", "bandwidth", "streams", "crowding"}
    assert found.path == tuning_host.calibration_file() and found.path.is_relative_to(quick)
    assert [path.name for path in found.path.parent.iterdir()] == [found.path.name]
    assert quick.stat().st_mode & 0o777 == 0o700
    assert all(low <= getattr(found.machine, k) <= high for k, (low, high) in LIMITS.items())
    known.cache_clear()
    assert known() == found
    assert known().machine.gathering == DEFAULT.gathering


def test_what_rounds_disagree_about_stays(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {"launch": 1e-6, "bandwidth": 1e11, "streams": 9, "crowding": 0.5}
    measure_host.write(tuning_host.calibration_file(), text_of(before))
    tune(monkeypatch, agree=0.0)
    after = pyfuser.calibrate()
    assert {name: getattr(after.machine, name) for name in before} == before


def test_command(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert "5 us (default)" in text and "`pyfuser calibrate` measures them" in text
    assert main(["calibrate"]) == (0 if known().measured == LIMITS.keys() else 1)
    assert "GB/s (measured)" in capsys.readouterr().out
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert "GB/s (measured)" in text and str(known().path) in text


def test_command_on_a_busy_machine(
    quick: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tune(monkeypatch, agree=0.0)
    assert main(["calibrate"]) == 1
    shown = capsys.readouterr()
    assert "too busy to measure launch, bandwidth, streams, crowding" in shown.err
    assert "5 us (default)" in shown.out


def test_processors_that_others_use_are_noticed(
    quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tune(monkeypatch, alone=2.0)  # more than all of the time
    assert pyfuser.calibrate().measured <= {"cache"}  # as the system tells it


def test_a_place_that_cannot_be_written(quick: Path) -> None:
    quick.write_text("not a directory")
    with pytest.raises(CacheError, match="set PYFUSER_CACHE_DIR"):
        pyfuser.calibrate()


def test_a_place_of_everybody_is_refused(quick: Path) -> None:
    (quick / "machines").mkdir(parents=True)
    (quick / "machines").chmod(0o777)
    with pytest.raises(CacheError, match="can be written by others"):
        pyfuser.calibrate()
    assert list((quick / "machines").iterdir()) == []
