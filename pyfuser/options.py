"""Options and files of the command line: what is wrong with them is said on one line."""

from __future__ import annotations

import argparse
import ast
import difflib
import glob
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from pyfuser.support import syntax
from pyfuser.support.errors import PyFuserError, UsageError

INTERRUPTED = 130
"""The exit status of what Ctrl-C ended."""

_CHOICE = re.compile(r"invalid choice: '([^']*)'")
_UNKNOWN = "unrecognized arguments: "


class Parser(argparse.ArgumentParser):
    """Says what is wrong on one line, with the option or the command that may be meant."""

    def error(self, message: str) -> NoReturn:
        """End the process with status 2."""
        choice = _CHOICE.search(message)
        if choice is not None:
            message = self._unknown_command(choice[1])
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def unknown(self, arguments: Sequence[str]) -> NoReturn:
        """End the process for arguments that nothing is known of."""
        first = arguments[0]
        if not first.startswith("-"):
            self.error(f"unexpected argument {first}")
        name = first.partition("=")[0]
        self.error(f"unknown option {name}{meant(name, self._option_string_actions)}")

    def _unknown_command(self, given: str) -> str:
        if os.path.exists(given) or given.endswith(".py"):
            return f"{given} is not a command; to run a program: {self.prog} run {given}"
        commands = [name for action in self._actions for name in action.choices or ()]
        return f"unknown command {given}{meant(given, commands)}"


def meant(given: str, known: Iterable[str]) -> str:
    """What may be meant, if anything is like what was given."""
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(given.lower(), by_lower, n=1, cutoff=0.65)
    return f"; did you mean {by_lower[near[0]]}?" if near else ""


def positive(text: str) -> int:
    """A whole number of at least 1, as the type of an option."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, not {text}")
    return value


def source(path: Path) -> ast.Module:
    """The syntax tree of a Python file. Raises UsageError if there is none."""
    if path.is_dir():
        raise UsageError(f"{path}: a folder, not a program; to take all in it: {path / '*.py'}")
    if path.suffix == ".ipynb":
        raise UsageError(
            f"{path}: a notebook, not a script; in it, use %load_ext pyfuser and the magic %%fuse"
        )
    try:
        return syntax.module(path.read_bytes(), str(path))
    except FileNotFoundError:
        if glob.has_magic(str(path)):
            raise UsageError(f"{path}: no file has such a name") from None
        beside = [str(path.parent / name) for name in _names(path.parent)]
        raise UsageError(f"{path}: no such file{meant(str(path), beside)}") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except SyntaxError as error:
        line = "" if error.lineno is None else f":{error.lineno}"
        raise UsageError(f"{path}{line}: not valid Python: {error.msg}") from None
    except ValueError as error:  # null bytes
        raise UsageError(f"{path}: not valid Python: {error}") from None


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(folder) if entry.is_file()]
    except OSError:
        return []


def check_writable(option: str, path: Path | None) -> None:
    """Make the folder of a file that will be written. Raises UsageError if it cannot be."""
    if path is None:
        return
    exists = path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab"):
            pass
        if not exists:
            path.unlink()
    except OSError as error:
        raise UsageError(f"{option} {path}: cannot be written: {error.strerror}") from None


def use_space(name: str | None) -> None:
    """Make an execution space the default, if one is given.

    Raises UsageError if PyKokkos has none of this name, or it cannot be used here.
    """
    if name is None:
        return
    import pykokkos  # the one that programs will find

    from pyfuser.frontends.embedded import pykokkos as embedded
    from pyfuser.frontends.embedded.spaces import resolve_space

    check_space(name, [space.name for space in pykokkos.ExecutionSpace])
    space = pykokkos.ExecutionSpace(name)
    try:
        if pykokkos is embedded:
            resolve_space(space)
        pykokkos.set_default_space(space)
    except PyFuserError as error:
        raise UsageError(f"--space {name}: {error}") from None


def check_space(name: str, known: Sequence[str]) -> None:
    """Raise UsageError if a name is none of the known ones."""
    if name not in known:
        near = meant(name, known) or f"; there are {', '.join(known)}"
        raise UsageError(f"--space {name}: no such execution space{near}")
