"""The machine's constants: what a calibration file must be to be believed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from pyfuser.plan.cost_model import CostModel, group_cost
from pyfuser.support.settings import SETTINGS
from pyfuser.tuning import host as tuning_host
from pyfuser.tuning.host import DEFAULT, LIMITS, SCHEMA, Known, known, parsed, text_of
from tests.analysis.build import S, View, call, region, trace, workunit

VALUES = {
    "launch": 1e-6,
    "bandwidth": 1e11,
    "streams": 9,
    "crowding": 0.5,
    "cache": 1 << 21,
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """This machine's calibration, not yet written, of a process that would read it."""
    monkeypatch.setattr(
        tuning_host, "SETTINGS", replace(SETTINGS, directory=tmp_path, calibration=True)
    )
    known.cache_clear()
    path = tuning_host.calibration_file()
    path.parent.mkdir()
    yield path
    known.cache_clear()


def write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o600)


def test_without_a_file_the_defaults_count(file: Path) -> None:
    assert known() == Known(DEFAULT, frozenset(), None)


def test_a_calibration_is_read_once(file: Path) -> None:
    write(file, text_of(VALUES))
    assert known() == Known(replace(DEFAULT, **VALUES), frozenset(LIMITS), file)
    file.unlink()
    assert known().path == file


def test_constants_that_were_not_measured_keep_their_defaults(file: Path) -> None:
    write(file, text_of({"launch": 1e-6}))
    assert known() == Known(replace(DEFAULT, launch=1e-6), frozenset({"launch"}), file)


def test_the_file_is_json_that_tells_what_it_is_of(file: Path) -> None:
    facts = json.loads(text_of(VALUES))
    assert facts.keys() == {"schema", "identity", "processor", "threads", *VALUES}
    assert {name: facts[name] for name in VALUES} == VALUES
    assert facts["threads"] == SETTINGS.threads


def test_everything_that_is_measured_is_a_constant_within_limits() -> None:
    values = asdict(DEFAULT)
    assert all(low < values[name] < high for name, (low, high) in LIMITS.items())


def test_a_process_may_ignore_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(file, text_of(VALUES))
    monkeypatch.setattr(tuning_host, "SETTINGS", replace(tuning_host.SETTINGS, calibration=False))
    assert known() == Known()


def test_the_tests_ignore_it() -> None:
    assert not SETTINGS.calibration
    assert known() == Known()


@pytest.mark.parametrize(
    "change",
    [
        {"schema": SCHEMA + 1},
        {"identity": "0" * 64},
        {"launch": 0.0},
        {"launch": float("inf")},
        {"launch": float("nan")},
        {"launch": True},
        {"launch": "5e-6"},
        {"bandwidth": -1e9},
        {"streams": 9.5},
        {"cache": 1 << 50},
        {"cache": [1 << 20]},
    ],
    ids=str,
)
def test_one_wrong_value_makes_the_file_worthless(change: dict[str, object], file: Path) -> None:
    write(file, json.dumps(json.loads(text_of(VALUES)) | change))
    assert known() == Known()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b"\xff\xfe",
        b"\0",
        b"(" * 10_000,
        b"{[]: 1}",
        b"__import__('os').abort()",
        text_of(VALUES).encode()[:-5],
    ],
    ids=lambda text: repr(text[:12]),
)
def test_a_broken_file_is_no_file(text: bytes) -> None:
    assert parsed(text) == {}
    assert parsed(text_of(VALUES).encode()) == VALUES  # its twin


def make_link(path: Path) -> None:
    path.rename(path.with_suffix(".other"))
    path.symlink_to(path.with_suffix(".other"))


def make_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize(
    "damage",
    [make_link, make_directory, make_pipe, lambda p: p.chmod(0o620), lambda p: p.chmod(0o602)],
)
def test_what_others_could_have_written_is_ignored(
    damage: Callable[[Path], None], file: Path
) -> None:
    write(file, text_of(VALUES))
    damage(file)
    assert known() == Known()


def test_a_file_of_another_user_is_ignored(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(file, text_of(VALUES))
    owner = file.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert known() == Known()


def test_other_processors_and_numbers_of_threads_have_their_own_files(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def path() -> Path:
        tuning_host.identity.cache_clear()
        return tuning_host.calibration_file()

    own = path()
    with monkeypatch.context() as patch:
        patch.setattr(tuning_host, "cpu_identity", lambda: "another processor")
        other = path()
    with monkeypatch.context() as patch:
        more = replace(tuning_host.SETTINGS, threads=SETTINGS.threads + 1)
        patch.setattr(tuning_host, "SETTINGS", more)
        wider = path()
    assert own == path() == file
    assert len({own, other, wider}) == 3


def test_costs_are_those_of_the_known_machine(file: Path) -> None:
    i, x, y = S("i"), View("x"), View("y")
    unit = workunit("copy", [i], [x, y], [y[i] << x[i]])
    shape = trace(call(unit, 1000, region(0, 1000), region(1, 1000)))
    before = group_cost(shape, (0,))
    assert before == pytest.approx(DEFAULT.launch + 24_000 / DEFAULT.bandwidth)
    write(file, text_of(VALUES))
    known.cache_clear()
    assert group_cost(shape, (0,)) == pytest.approx(1e-6 + 24_000 / 1e11)
    assert CostModel(shape).machine == known().machine


_PROGRAM = """
import pyfuser
import pykokkos as pk
from pyfuser.tuning.host import known
from tests.faults.workunits import increment
assert not known.cache_info().currsize, "the import has read it"
x = pk.View([8], pk.double)
with pyfuser.fusing():
    pk.parallel_for(8, increment, x=x)
    pk.parallel_for(8, increment, x=x)
    assert not known.cache_info().currsize, "recording has read it"
assert known.cache_info().currsize == 1
print(known().machine.launch, x[0])
"""


@pytest.mark.parametrize(("text", "launch"), [(None, 5e-06), ("{", 5e-06), (VALUES, 1e-06)])
def test_a_process_reads_it_with_its_first_plan(
    text: dict[str, float] | str | None, launch: float, file: Path
) -> None:
    if text is not None:
        write(file, text if isinstance(text, str) else text_of(text))
    variables = {"PYFUSER_CALIBRATION": "1", "PYFUSER_CACHE_DIR": str(file.parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        check=False,
        env={**os.environ, **variables, "PYFUSER_THREADS": str(SETTINGS.threads)},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    assert done.stdout.split() == [str(launch), "2.0"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["processor : 0", "vendor_id\t: GenuineIntel", "model name : A"], True),
        (["vendor_id\t: AuthenticAMD", "model name : not GenuineIntel"], False),
        (["CPU implementer : 0x41"], False),
        ([], False),
    ],
)
def test_the_vendor_of_the_processor(
    lines: list[str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning_host, "_cpu_lines", lambda: lines)
    assert tuning_host.is_intel() is expected
