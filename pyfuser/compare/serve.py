"""Loads and times a program; as a script, serves one to `peer.Peer` from another Python.

It imports nothing of PyFuser, because the Python that has PyKokkos installed need not have it.

A program is a Python file with

- ``SIZES``: a size (int) for each of "small", "default" and "large",
- ``setup(size) -> state``, ``run(state)``, ``outputs(state) -> dict of arrays and numbers``,
- ``check(state, size, runs)``: raises AssertionError if `runs` runs did not do what they should,
- optionally ``UPSTREAM = False``: an installed PyKokkos cannot run it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import IO, Any

PROTOCOL = ("SIZES", "setup", "run", "outputs", "check")


class ProgramError(Exception):
    """A file is not a program that can be compared."""


def load(path: Path) -> ModuleType:
    """Import a program from its file.

    Raises ProgramError if the file is missing or lacks a part of the protocol.
    """
    name = f"pyfuser_program_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ProgramError(f"{path}: not a Python file; give the path of a program")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # inspect.getsource and dataclasses look here
    spec.loader.exec_module(module)
    missing = [part for part in PROTOCOL if not hasattr(module, part)]
    if missing:
        raise ProgramError(f"{path}: lacks {', '.join(missing)}; kernels/ has examples")
    return module


def size_of(module: ModuleType, text: str) -> int:
    """The problem size that `text`, a number or one of the names in SIZES, stands for."""
    if text in module.SIZES:
        return int(module.SIZES[text])
    if text.isdigit() and int(text) > 0:
        return int(text)
    raise ProgramError(f"--size {text}: expected {', '.join(module.SIZES)} or a number above 0")


def use_space(space: str | None) -> None:
    """Make `space` the default execution space, if one is given."""
    if space is not None:
        import pykokkos as pk

        pk.set_default_space(pk.ExecutionSpace(space))


def timed_run(module: ModuleType, state: Any, finish: Callable[[], object]) -> float:
    """Seconds of one run, until `finish` has returned."""
    start = perf_counter()
    module.run(state)
    finish()
    return perf_counter() - start


def failed_check(module: ModuleType, state: Any, size: int, runs: int) -> str | None:
    """What the program's own check finds wrong, on one line; None if it is content."""
    try:
        module.check(state, size, runs)
    except AssertionError as error:
        return " ".join(str(error).split()) or "assertion failed"
    return None


def private_stdout() -> IO[str]:
    """The real stdout for answers; what the program prints goes to stderr from now on."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


def converse(answers: IO[str], answer: Callable[[str, str], object]) -> None:
    """Answer each line of stdin by a line of JSON: what `answer(command, argument)` returns."""
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        answers.write(json.dumps({"value": answer(command, argument)}) + "\n")


def _serve(answers: IO[str], path: str, size_text: str, space: str) -> None:
    """Answer the commands ``run``, ``check`` and ``outputs FILE``."""
    import numpy as np

    module = load(Path(path))
    size = size_of(module, size_text)
    use_space(space or None)

    import pykokkos as pk

    finish = getattr(pk, "fence", lambda: None)
    state, runs = module.setup(size), 0

    def answer(command: str, argument: str) -> object:
        nonlocal runs
        if command == "run":
            runs += 1
            return timed_run(module, state, finish)
        if command == "check":
            return failed_check(module, state, size, runs)
        if command == "outputs":
            np.savez(argument, **module.outputs(state))
        return None

    converse(answers, answer)


def explained(error: Exception) -> str:
    """A line of JSON that tells the asking process what went wrong."""
    reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return json.dumps({"error": reason}) + "\n"


def main() -> None:
    answers = private_stdout()
    try:
        _serve(answers, *sys.argv[1:])
    except Exception as error:
        answers.write(explained(error))
    answers.flush()
    os._exit(0)  # Kokkos aborts when it is finalised before the module's Views are freed


if __name__ == "__main__":
    main()
