"""A process that has compiled nothing; its compiler and cache can be broken and mended."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pyfuser
from pyfuser.engine import compiler, native
from pyfuser.engine.cache import KernelCache
from pyfuser.frontends import modes
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.reason import SYNC
from tests.faults.workunits import SIZE, increment, shift, total
from tests.processes import servers

ROOT = Path(__file__).parents[2]
REAL = shutil.which(shlex.split(SETTINGS.compiler)[0])
NOBODY = 65534


@pytest.fixture(autouse=True)
def needs_a_compiler() -> None:
    if REAL is None:
        pytest.skip(f"no C++ compiler: {SETTINGS.compiler}")


class Machine:
    """The process's compiler (a shell script that can be rewritten) and its cache directory."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.script = folder / "c++"
        self.log = folder / "compilations"
        self.patch = monkeypatch
        self.processes: list[subprocess.Popen[str]] = []
        self.mend()
        settings = replace(SETTINGS, compiler=str(self.script), threads=2)
        monkeypatch.setattr(native, "SETTINGS", settings)
        self.restart()

    def restart(self) -> None:
        """What a new process knows: nothing."""
        directory = KernelCache(self.cache)
        self.patch.setattr(native, "kernel_cache", lambda: directory)
        SESSION.clear()
        compiler.find_compiler.cache_clear()

    def break_compiler(self, text: str) -> None:
        """Make the compiler a shell script; in it $target is the library and $real the compiler."""
        new = self.script.with_suffix(".new")
        new.write_text(
            f"#!/bin/sh\necho $$ >> {self.log}\nreal={REAL}\n"
            'target=$(echo "$*" | sed "s/.*-o \\([^ ]*\\).*/\\1/")\n' + text + "\n"
        )
        new.chmod(0o700)
        os.replace(new, self.script)

    def mend(self) -> None:
        self.break_compiler('exec "$real" "$@"')

    @property
    def compilations(self) -> int:
        """How often the compiler was started."""
        return len(self.log.read_text().split()) if self.log.exists() else 0

    def left(self) -> set[str]:
        """The kinds of files in the cache directory."""
        kernels = self.cache / "kernels"
        return {p.suffix or p.name for p in kernels.iterdir()} if kernels.exists() else set()

    def environment(self, **more: str) -> dict[str, str]:
        return {
            **os.environ,
            "PYFUSER_CACHE_DIR": str(self.cache),
            "PYFUSER_CXX": str(self.script),
            "PYFUSER_THREADS": "2",
            "PYTHONPATH": str(ROOT),
            **more,
        }

    def start(self, program: str, *wrapper: str, **variables: str) -> subprocess.Popen[str]:
        """Run Python source in a process of its own, under the command `wrapper`."""
        process = subprocess.Popen(
            [*wrapper, sys.executable, "-c", "from tests.faults.workunits import *\n" + program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(**variables),
            cwd=ROOT,
        )
        self.processes.append(process)
        return process

    def output(self, program: str, *wrapper: str, **variables: str) -> tuple[str, str]:
        """stdout and stderr of a program that must succeed."""
        process = self.start(program, *wrapper, **variables)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        return out.strip(), err


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    TRACER.flush(SYNC)
    monkeypatch.setattr(modes.SWITCHES, "everywhere", None)
    monkeypatch.setattr(modes.SWITCHES, "allowed", True)
    made = Machine(tmp_path, monkeypatch)
    yield made
    for process in made.processes:
        with process:  # closes its pipes and waits for it
            process.kill()
    TRACER.remove(list(TRACER.calls))
    made.restart()


class Program:
    """Three pending calls that need two kernels at least; run twice they give another result."""

    def __init__(self) -> None:
        self.x = pk.View([SIZE], pk.double)
        self.y = pk.View([SIZE], pk.double)
        pk.parallel_for(SIZE, increment, x=self.x)
        pk.parallel_for(SIZE - 1, shift, x=self.x, y=self.y)  # reads what another iteration wrote
        self.sum = pk.parallel_reduce(SIZE, total, x=self.x)

    def check_untouched(self) -> None:
        """Nothing has run, nothing is lost."""
        assert [line.split()[0] for line in pyfuser.pending()] == ["increment", "shift", "total"]
        assert not self.x._region.buffer.allocated or not self.x._region.buffer.root.any()

    def check_done(self) -> None:
        """Everything runs, or has run, once."""
        pyfuser.sync()
        assert pyfuser.pending() == ()
        assert float(self.sum) == SIZE
        np.testing.assert_array_equal(self.x, np.ones(SIZE))
        np.testing.assert_array_equal(self.y, [1.0] * (SIZE - 1) + [0.0])


@pytest.fixture
def program(machine: Machine) -> Program:
    return Program()


def children() -> list[str]:
    """The processes this one has started and not waited for, zombies included."""
    lists = Path("/proc/self/task").glob("*/children")
    return [pid for file in lists for pid in file.read_text().split() if int(pid) not in servers()]
