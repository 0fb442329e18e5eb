"""Everything that is to be known of a machine with a GPU, in one command: `make gpu`.

It needs CuPy for the machine's driver and nothing from the network: packages that are missing are
taken from wheels in a folder (`--wheels`), which are unpacked, not installed. One part after the
other runs in a process of its own, with what is left of the time; one that fails does not keep the
next from running. What was found is written after each part, to results/gpu-NAME.json.

    tests      tests/gpu, on the GPU
    sanitize   every program at its small size under compute-sanitizer, if there is one: accesses
               outside of memory, and races in shared memory
    calibrate  the constants of the cost model
    timings    launches, replays, the bandwidth of a copy, loads of 16 bytes: see gpu_timings.py
    compare    every program, fused against unfused, at a size that fills the GPU
    peers      the same programs by CuPy, cupy.fuse, JAX, torch.compile, Numba CUDA beside ours;
               packages that are not there are left out, which the results say
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).parent / "results"
PROGRAMS = sorted((ROOT / "kernels").glob("*.py"))
TAIL = 4000  # characters of output that are kept of a part that failed
PEER_SECONDS = 300.0  # for one program by all peers, most of it random numbers of the host
TOOLS = ("memcheck", "racecheck")

Part = Callable[["Session"], dict[str, Any]]


class Session:
    """The parts that ran, and the time that is left.

    python: how this Python is started, with all packages to be found.
    """

    def __init__(self, space: str, minutes: float, wheels: Path | None, size: str | None) -> None:
        self.space = space
        self.size = size
        self.deadline = time.monotonic() + 60.0 * minutes
        self.scratch = Path(tempfile.mkdtemp(prefix="pyfuser-gpu-"))
        paths = [str(ROOT), *self._unpacked(wheels), os.environ.get("PYTHONPATH", "")]
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "PYFUSER_CACHE_DIR": os.environ.get("PYFUSER_CACHE_DIR", str(self.scratch / "cache")),
        }

    def _unpacked(self, wheels: Path | None) -> list[str]:
        """A folder with the packages of all wheels that this Python lacks."""
        if wheels is None:
            return []
        folder = self.scratch / "packages"
        for wheel in sorted(wheels.glob("*.whl")):
            name = wheel.name.split("-")[0].lower()
            if importlib.util.find_spec(name) is None:
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(folder)
        return [str(folder)]

    @property
    def seconds(self) -> float:
        """What is left."""
        return self.deadline - time.monotonic()

    def run(self, *command: str, limit: float = 1e9, **environment: str) -> dict[str, Any]:
        """Run a command of this Python; how it ended, and what it printed last if not well."""
        start = time.monotonic()
        seconds = max(min(limit, self.seconds), 1.0)
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env={**self.environment, **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=seconds,
                check=False,
            )
            code, output = done.returncode, done.stdout
        except subprocess.TimeoutExpired as error:
            code, output = -1, f"{error.stdout!r}\n(stopped after {seconds:.0f} s)"
        found: dict[str, Any] = {"exit": code, "seconds": round(time.monotonic() - start, 1)}
        last = output.strip().splitlines()[-1:] if output.strip() else []
        found["last"] = "".join(last)
        if code:
            found["output"] = output[-TAIL:]
        return found

    def python(self, *arguments: str, limit: float = 1e9, **environment: str) -> dict[str, Any]:
        """Run this Python."""
        return self.run(sys.executable, *arguments, limit=limit, **environment)


def tests(session: Session) -> dict[str, Any]:
    """The tests of GPU kernels and of programs on GPUs."""
    return session.python("-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "tests/gpu")


def sanitize(session: Session) -> dict[str, Any]:
    """Programs under compute-sanitizer."""
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        for path in ("/usr/local/cuda/bin/compute-sanitizer", "/opt/cuda/bin/compute-sanitizer"):
            tool = path if Path(path).is_file() else tool
    if tool is None:
        return {"exit": 0, "last": "no compute-sanitizer here"}
    script = str(Path(__file__).with_name("gpu_programs.py"))
    found: dict[str, Any] = {"exit": 0}
    for name in TOOLS:
        options = ("--tool", name, "--error-exitcode", "9")
        command = (tool, *options, sys.executable, script, session.space)
        found[name] = session.run(*command, limit=session.seconds / 3)
        found["exit"] = found["exit"] or found[name]["exit"]
    return found


def calibrate(session: Session) -> dict[str, Any]:
    """The cost model's constants."""
    return session.python("-m", "pyfuser", "calibrate", "--space", session.space)


def timings(session: Session) -> dict[str, Any]:
    """Launches, replays, bandwidth, vectors."""
    target = session.scratch / "timings.json"
    script = str(Path(__file__).with_name("gpu_timings.py"))
    found = session.python(script, session.space, str(target))
    if target.exists():
        found["values"] = json.loads(target.read_text("utf-8"))
    return found


def compare(session: Session) -> dict[str, Any]:
    """Programs fused against unfused; as many as there is time for."""

    def command(program: Path) -> list[str]:
        return ["-m", "pyfuser", "compare", str(program), "--space", session.space]

    return _each_program(session, command)


def peers(session: Session) -> dict[str, Any]:
    """Programs by other tools; as many as there is time for."""

    def command(program: Path) -> list[str]:
        names = ["--space", session.space, "--programs", program.stem]
        return ["-m", "experiments.peers", *names]

    return _each_program(session, command, limit=PEER_SECONDS)


def _each_program(
    session: Session, command: Callable[[Path], Sequence[str]], limit: float = 1e9
) -> dict[str, Any]:
    """What a command makes of each program at its size for GPUs, with results checked at small."""
    found: dict[str, Any] = {"exit": 0, "programs": {}}
    for program in PROGRAMS:
        if session.seconds < 20.0:
            found["skipped"] = program.stem
            break
        target = session.scratch / f"{program.stem}.json"
        target.unlink(missing_ok=True)  # of another part
        size = session.size or "gpu"
        done = session.python(
            *command(program),
            *("--size", size, "--check-size", "small", "--json", str(target)),
            limit=limit,
        )
        if target.exists():
            done["result"] = json.loads(target.read_text("utf-8"))
        found["programs"][program.stem] = done
        found["exit"] = found["exit"] or done["exit"]
        print(f"  {program.stem}: exit {done['exit']}, {done['seconds']} s", flush=True)
    return found


PARTS: dict[str, Part] = {
    part.__name__: part for part in (tests, sanitize, calibrate, timings, compare, peers)
}


def device_name(session: Session) -> str:
    """What the GPU is called. Exits with a message if there is none."""
    code = (
        "import pykokkos as pk, pyfuser\n"
        f"pk.set_default_space(pk.{session.space})\n"
        "from pyfuser.engine.gpu.device import current\n"
        "print(current().name, '|', current().library.description)"
    )
    done = session.python("-c", "import pyfuser\n" + code)
    if done["exit"]:
        sys.exit(f"on_gpu: {done.get('output', done['last']).strip().splitlines()[-1]}")
    return str(done["last"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts; 1 if one failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--space", default="Cuda", choices=("Cuda", "HIP"))
    parser.add_argument("--wheels", type=Path, help="a folder with wheels of missing packages")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas (%(default)s)")
    parser.add_argument("--minutes", type=float, default=60.0, help="for all parts (%(default)s)")
    parser.add_argument("--size", help="of the programs (each one's gpu)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="a folder (%(default)s)")
    options = parser.parse_args(arguments)
    chosen = options.only.split(",")
    if not set(chosen) <= PARTS.keys():
        parser.error(f"--only {options.only}: expected {', '.join(PARTS)}")
    session = Session(options.space, options.minutes, options.wheels, options.size)
    name, _, library = device_name(session).partition(" | ")
    facts = {"device": name, "library": library, "python": platform.python_version()}
    options.out.mkdir(parents=True, exist_ok=True)
    target = options.out / f"gpu-{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-')}.json"
    found: dict[str, Any] = {}
    for part in chosen:
        print(f"{part} ...", flush=True)
        found[part] = PARTS[part](session)
        print(f"{part}: exit {found[part]['exit']} {found[part].get('last', '')}", flush=True)
        if found[part]["exit"]:
            print(found[part].get("output", ""), flush=True)
        target.write_text(json.dumps({**facts, **found}, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {target}")
    shutil.rmtree(session.scratch, ignore_errors=True)
    return int(any(part["exit"] for part in found.values()))


if __name__ == "__main__":
    sys.exit(main())
