"""Everything that is to be known of a machine with a GPU, in one command: `make gpu`.

It needs CuPy for the machine's driver and nothing from the network: packages that are missing are
taken from wheels in a folder (`--wheels`), which are unpacked, not installed. One part after the
other runs in a process of its own, with what is left of the time; one that fails does not keep the
next from running. What was found is written after each part, and after each program, to
results/gpu-NAME.json, and what a part printed that failed to gpu-NAME-PART.log beside it: so
nothing is lost where the machine ends the command. What the file holds of parts that are not run
stays, and a program that was measured well is not measured again (`--again`), so several short
calls do as well as a long one:

    make gpu GPU='--only tests,calibrate,timings --minutes 9 --out DIR'
    make gpu GPU='--only compare --minutes 9 --out DIR'

    tests      tests/gpu, on the GPU, by several processes if pytest-xdist is there
    fuzz       random programs, against plain Python, or fused against unfused (CUDA alone)
    sanitize   every program at its small size under compute-sanitizer, if there is one: accesses
               outside of memory, and races in shared memory
    calibrate  the constants of the cost model
    timings    launches, replays, the bandwidth of a copy, loads of 16 bytes: see gpu_timings.py
    compare    every program, fused against unfused, at a size that fills the GPU
    numpy      the programs of kernels/numpy by pyfuser.numpy, CuPy, and NumPy on the host
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
LOG = 4_000_000  # the same, in a file of its own
WORKERS = 8  # processes that test: each holds a context of some hundred MB on the GPU
COMPARE_SECONDS = 120.0  # for one program, fused and unfused
FUZZ_SECONDS = 120.0
PEER_SECONDS = 300.0  # for one program by all peers, most of it random numbers of the host
TOOLS = ("memcheck", "racecheck")

Part = Callable[["Session"], dict[str, Any]]


class Session:
    """What is to be run, the time that is left, and what was found so far.

    part: the one that runs. found: by part. target: the file that has it all.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        wheels: Path | None = options.wheels
        self.space: str = options.space
        self.size: str | None = options.size
        self.programs = [p for p in PROGRAMS if options.programs in (None, p.stem)]
        self.again: bool = options.again
        self.timed = ("8", "18") if options.rehearse else ()
        self.part = ""
        self.facts: dict[str, Any] = {}
        self.found: dict[str, Any] = {}
        self.target = Path()
        self.deadline = time.monotonic() + 60.0 * options.minutes
        self.scratch = Path(tempfile.mkdtemp(prefix="pyfuser-gpu-"))
        paths = [str(ROOT), *self._unpacked(wheels), os.environ.get("PYTHONPATH", "")]
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "PYFUSER_CACHE_DIR": os.environ.get("PYFUSER_CACHE_DIR", str(self.scratch / "cache")),
        }

    def open(self, folder: Path, name: str, facts: dict[str, Any]) -> None:
        """Write to a folder from now on, beside what an earlier call found on such a GPU."""
        folder.mkdir(parents=True, exist_ok=True)
        self.target = folder / f"gpu-{name}.json"
        if self.target.exists():
            self.found = json.loads(self.target.read_text("utf-8"))
        self.facts = facts

    def save(self) -> None:
        """Write what was found so far; a call that is ended meanwhile leaves the old file."""
        text = json.dumps({**self.found, **self.facts}, indent=1) + "\n"
        part = self.target.with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.replace(self.target)

    def log(self, output: str) -> None:
        """Keep what a part that failed printed."""
        if self.target.name:
            with open(
                f"{self.target.with_suffix('')}-{self.part}.log", "a", encoding="utf-8"
            ) as file:
                file.write(output[-LOG:] + "\n")

    def has(self, module: str) -> bool:
        """Whether a program of this Python would find a module."""
        packages = self.scratch / "packages" / module
        return packages.exists() or importlib.util.find_spec(module) is not None

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
            printed = error.stdout or b""
            text = printed if isinstance(printed, str) else printed.decode(errors="replace")
            code, output = -1, f"{text}\n(stopped after {seconds:.0f} s)"
        found: dict[str, Any] = {"exit": code, "seconds": round(time.monotonic() - start, 1)}
        last = output.strip().splitlines()[-1:] if output.strip() else []
        found["last"] = "".join(last)
        if code:
            found["output"] = output[-TAIL:]
            self.log(output)
        return found

    def python(self, *arguments: str, limit: float = 1e9, **environment: str) -> dict[str, Any]:
        """Run this Python."""
        return self.run(sys.executable, *arguments, limit=limit, **environment)


def tests(session: Session) -> dict[str, Any]:
    """The tests of GPU kernels and of programs on GPUs."""
    options = ["-q", "-rs", "--tb=short", "-p", "no:cacheprovider"]
    if session.has("xdist"):
        options += ["-n", str(min(WORKERS, os.cpu_count() or 1)), "--dist", "worksteal"]
    return session.python("-m", "pytest", *options, "tests/gpu")


def fuzz(session: Session) -> dict[str, Any]:
    """Random programs."""
    if session.space != "Cuda":
        return {"exit": 0, "last": "for CUDA alone"}
    minutes = min(FUZZ_SECONDS, session.seconds / 3) / 60.0
    folder = str(session.target.parent / "fuzz-failures")
    options = ("--tier", "device", "--programs", "100000", "--output", folder)
    return session.python("-m", "tests.fuzz", *options, "--minutes", f"{minutes:.2f}")


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
    """Launches, replays, bandwidth."""
    target = session.scratch / "timings.json"
    script = str(Path(__file__).with_name("gpu_timings.py"))
    found = session.python(script, session.space, str(target), *session.timed)
    if target.exists():
        found["values"] = json.loads(target.read_text("utf-8"))
    return found


def compare(session: Session) -> dict[str, Any]:
    """Programs fused against unfused; as many as there is time for."""

    def command(program: Path) -> list[str]:
        return ["-m", "pyfuser", "compare", str(program), "--space", session.space]

    return _each_program(session, command, limit=COMPARE_SECONDS)


def peers(session: Session) -> dict[str, Any]:
    """Programs by other tools; as many as there is time for."""

    def command(program: Path) -> list[str]:
        names = ["--space", session.space, "--programs", program.stem]
        return ["-m", "experiments.peers", *names]

    return _each_program(session, command, limit=PEER_SECONDS)


def numpy(session: Session) -> dict[str, Any]:
    """NumPy programs."""
    target = session.scratch / "numpy.json"
    options = ["--space", session.space, "--json", str(target)]
    options += ["--small"] if session.timed else []
    found = session.python("-m", "experiments.numpy_programs", *options)
    if target.exists():
        found["programs"] = json.loads(target.read_text("utf-8"))
    return found


def _each_program(
    session: Session, command: Callable[[Path], Sequence[str]], limit: float
) -> dict[str, Any]:
    """What a command makes of each program at its size for GPUs, with results checked at small."""
    before = session.found.get(session.part, {}).get("programs", {})
    found: dict[str, Any] = {"exit": 0, "programs": dict(before)}
    session.found[session.part] = found
    for program in session.programs:
        if program.stem in before and not before[program.stem]["exit"] and not session.again:
            continue
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
        session.save()
        print(f"  {program.stem}: exit {done['exit']}, {done['seconds']} s", flush=True)
    return found


PARTS: dict[str, Part] = {
    part.__name__: part
    for part in (tests, fuzz, sanitize, calibrate, timings, compare, numpy, peers)
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
        sys.exit(f"on_gpu: no GPU can be used:\n{done.get('output', done['last']).strip()}")
    return str(done["last"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts; 1 if one failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--space", default="Cuda", choices=("Cuda", "HIP"))
    parser.add_argument("--wheels", type=Path, help="a folder with wheels of missing packages")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas (%(default)s)")
    parser.add_argument("--minutes", type=float, default=60.0, help="for all parts (%(default)s)")
    parser.add_argument("--size", help="of the programs (each one's gpu)")
    parser.add_argument("--programs", help="one program of kernels/, by name (all)")
    parser.add_argument(
        "--rehearse", action="store_true", help="time little: for tests/gpu/fake_cupy in PYTHONPATH"
    )
    parser.add_argument("--again", action="store_true", help="measure what was measured before")
    parser.add_argument("--out", type=Path, default=RESULTS, help="a folder (%(default)s)")
    options = parser.parse_args(arguments)
    chosen = options.only.split(",")
    if not set(chosen) <= PARTS.keys():
        parser.error(f"--only {options.only}: expected {', '.join(PARTS)}")
    session = Session(options)
    name, _, library = device_name(session).partition(" | ")
    facts = {"device": name, "library": library, "python": platform.python_version()}
    session.open(options.out, re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-"), facts)
    failed = []
    for part in chosen:
        print(f"{part} ...", flush=True)
        session.part = part
        found = session.found[part] = PARTS[part](session)
        session.save()
        print(f"{part}: exit {found['exit']} {found.get('last', '')}", flush=True)
        if found["exit"]:
            failed.append(part)
            print(found.get("output", ""), flush=True)
    print(f"wrote {session.target}")
    shutil.rmtree(session.scratch, ignore_errors=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
