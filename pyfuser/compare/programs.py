"""The files that a comparison is asked for: checked and loaded before anything is measured."""

from __future__ import annotations

import ast
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pyfuser
from pyfuser.compare import serve
from pyfuser.options import source
from pyfuser.support import tracebacks
from pyfuser.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """A program that was loaded. name: of the file, with its folder where another has the same."""

    path: Path
    name: str
    module: ModuleType
    size: int
    check_size: int | None


def is_program(tree: ast.Module) -> bool:
    """Whether a file defines the parts of a program; False: any other script."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(target.id for target in targets if isinstance(target, ast.Name))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name for alias in node.names)
    return "SIZES" in names


def divided(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Programs and other scripts, each file once.

    Raises UsageError if one cannot be read, or is not Python.
    """
    once = {path.resolve(): path for path in reversed(paths)}
    found: tuple[list[Path], list[Path]] = [], []
    for path in reversed(once.values()):
        found[0 if is_program(source(path)) else 1].append(path)
    repeated = len(paths) - len(once)
    if repeated:
        what = "a file is" if repeated == 1 else f"{repeated} files are"
        print(f"pyfuser: {what} given more than once and measured once", file=sys.stderr)
    return found


def load(paths: Sequence[Path], size: str, check_size: str | None) -> list[Program]:
    """Import the programs and look up their sizes. Raises ProgramError if one cannot be used."""
    stems = Counter(path.stem for path in paths)
    found = []
    for path in paths:
        with errors_of(path):
            module = serve.load(path)
        name = path.stem if stems[path.stem] == 1 else str(path.with_suffix(""))
        other = None if check_size is None else _size(module, path, "--check-size", check_size)
        found.append(Program(path, name, module, _size(module, path, "--size", size), other))
    return found


def _size(module: ModuleType, path: Path, option: str, text: str) -> int:
    try:
        return serve.size_of(module, text)
    except serve.ProgramError as error:
        said = str(error).replace("--size", option, 1)
        raise serve.ProgramError(f"{path.name}: {said}") from None


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Show what a program raises with its own lines only, and raise ProgramError in its place."""
    try:
        yield
    except serve.ProgramError:
        raise
    except (Exception, SystemExit) as error:
        pyfuser.discard()  # what it recorded cannot be what it meant to run
        step = tracebacks.users_part(error.__traceback__)
        while step is not None and step.tb_frame.f_code.co_filename.startswith("<frozen"):
            step = step.tb_next  # the import of the program
        if step is not None and tracebacks.is_ours(step):  # no line of the program's
            raise serve.ProgramError(f"{path}: {error}") from None
        traceback.print_exception(type(error), error, step)
        raise serve.ProgramError(f"{path}: stopped by {type(error).__name__}") from None
