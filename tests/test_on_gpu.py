"""`make gpu` without a GPU: what it keeps when it is called again, and when a part fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments import on_gpu


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    made: dict[str, Any] = {}
    monkeypatch.setattr(on_gpu, "PARTS", made)
    monkeypatch.setattr(on_gpu, "device_name", lambda session: "A (GPU) | CuPy")
    return made


def ran(folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    code = on_gpu.main([*options, "--out", str(folder)])
    return code, json.loads((folder / "gpu-A-GPU.json").read_text())


def test_calls_add_to_what_earlier_ones_found(parts: dict[str, Any], tmp_path: Path) -> None:
    parts["first"] = lambda session: session.python("-c", "print(3)")
    parts["second"] = lambda session: session.python("-c", "print(4); raise SystemExit(2)")
    code, found = ran(tmp_path, "--only", "first")
    assert (code, found["first"]["last"], found["device"]) == (0, "3", "A (GPU)")
    code, found = ran(tmp_path, "--only", "second")
    assert (code, found["second"]["exit"], found["first"]["last"]) == (1, 2, "3")
    assert (tmp_path / "gpu-A-GPU-second.log").read_text() == "4\n\n"


def test_programs_are_measured_once(
    parts: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_gpu, "PROGRAMS", [Path("one.py"), Path("two.py"), Path("three.py")])
    measured: list[str] = []

    def compare(session: Any) -> Any:
        def command(program: Path) -> list[str]:
            measured.append(program.stem)
            saved = json.loads(session.target.read_text()) if session.target.exists() else {}
            assert set(saved.get("compare", {}).get("programs", {})) >= set(measured[:-1])
            return ["-c", f"raise SystemExit({int(program.stem == 'two')})"]

        return on_gpu._each_program(session, command, limit=60.0)

    parts["compare"] = compare
    assert ran(tmp_path, "--only", "compare")[0] == 1
    assert measured == ["one", "two", "three"]
    assert ran(tmp_path, "--only", "compare")[0] == 1
    assert measured[3:] == ["two"], "what failed is measured again"
    ran(tmp_path, "--only", "compare", "--programs", "three", "--again")
    assert measured[4:] == ["three"]


def test_what_is_stopped_tells_what_it_printed(parts: dict[str, Any], tmp_path: Path) -> None:
    code = "import time; print('so far', flush=True); time.sleep(60)"
    parts["slow"] = lambda session: session.python("-c", code, limit=2.0)
    exit_code, found = ran(tmp_path, "--only", "slow")
    assert (exit_code, found["slow"]["exit"]) == (1, -1)
    assert found["slow"]["output"].startswith("so far\n")
