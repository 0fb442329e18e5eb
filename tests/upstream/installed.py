"""Finds an installed PyKokkos, and runs scripts there: in this Python, or in one that is named."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from pyfuser.compare.peer import find
from pyfuser.support.settings import SETTINGS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

_PROBE = "import pykokkos.core, islpy, rich, platformdirs"


@cache
def python() -> str | None:
    """A Python that has PyKokkos and what PyFuser needs, or None."""
    for candidate in (sys.executable, find(None)):
        if candidate is not None:
            probe = subprocess.run([candidate, "-c", _PROBE], capture_output=True, check=False)
            if probe.returncode == 0:
                return candidate
    return None


def require() -> str:
    """The Python to run; skips the test where there is none."""
    found = python()
    if found is None:
        pytest.skip("PyKokkos is not installed")
    return found


def environment(**settings: str) -> dict[str, str]:
    """The environment of a script; PyKokkos calls the tools beside its Python.

    Every trace is planned: else most of many small programs would run call by call.
    """
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("PYFUSER")}
    kept = {
        "PYFUSER_CACHE_DIR": str(SETTINGS.cache_dir),
        "PYFUSER_CALIBRATION": "0",
        "PYFUSER_ARBITRATE": "0",
    }
    tools = str(Path(require()).absolute().parent)
    paths = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    return {**inherited, **kept, **paths, **settings}


def run(script: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a script; PyKokkos keeps its kernels, of which each takes seconds, for the next time.

    It takes them for good whatever the source says, hence a folder for each text of the script.
    """
    digest = hashlib.sha256(script.read_bytes()).hexdigest()[:16]
    folder = SETTINGS.cache_dir / "pykokkos" / f"{script.stem}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "lock"):
        _drop_unfinished(folder)
        return subprocess.run(
            [require(), str(script), *arguments],
            cwd=folder,
            env=environment(**settings),
            capture_output=True,
            text=True,
            check=False,
        )


def _drop_unfinished(folder: Path) -> None:
    """Remove kernels whose compilation was interrupted, which PyKokkos would take for whole."""
    for source in list(folder.rglob("bindings.cpp")):
        if not any(source.parent.glob("*.so")):
            shutil.rmtree(source.parent)


@cache
def outputs(mode: str, engine: str = "native", *more: str) -> dict[str, Any]:
    """What `cases.py` makes in a mode; `more`: further arguments of it."""
    settings = {"PYFUSER_ENGINE": engine, "PYFUSER": "on" if mode == "careful" else "off"}
    file = SETTINGS.cache_dir / "pykokkos" / f"outputs-{os.getpid()}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    done = run(HERE / "cases.py", mode, str(file), *more, **settings)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "PyKokkos cannot run" not in done.stderr, done.stderr  # and the native engine did
    found: dict[str, Any] = json.loads(file.read_text())
    file.unlink()
    return found
