"""The same program in another Python, by an installed PyKokkos: a third column."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from pyfuser.compare import serve
from pyfuser.support.settings import SETTINGS


class PeerError(Exception):
    """The other Python could not run the program."""


def find(python: str | None) -> str | None:
    """The Python to ask: `python`, else what PYFUSER_PYKOKKOS_PYTHON names, else None."""
    return python or os.environ.get("PYFUSER_PYKOKKOS_PYTHON") or None


def activated(python: str) -> dict[str, str]:
    """The environment with that Python's own tools first: PyKokkos calls the CMake beside it."""
    tools = str(Path(python).absolute().parent)
    return {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', '')}"}


def working_folder(program: Path) -> Path:
    """Where PyKokkos keeps the program's kernels; it takes them for good whatever the source says.

    Hence a folder for each text of the program.
    """
    digest = hashlib.sha256(program.read_bytes()).hexdigest()[:16]
    return SETTINGS.cache_dir / "pykokkos" / f"{program.stem}-{digest}"


class Conversation:
    """A process that answers each line of its stdin by a line of JSON: see `serve.converse`.

    Raises PeerError if it cannot be started, and from then on whenever it says so or has ended.
    """

    def __init__(
        self, command: Sequence[str], cwd: Path | None = None, env: dict[str, str] | None = None
    ) -> None:
        self.failed = False
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by close()
        try:
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
            )
        except OSError as error:
            self._log.close()
            raise PeerError(f"{command[0]}: {error.strerror}") from None

    def ask(self, command: str) -> Any:
        """The answer's value."""
        self.tell(command)
        return self.answer()

    def tell(self, command: str) -> None:
        """Let the process begin; `answer` waits for it."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # then there is no answer
            self._process.stdin.write(command + "\n")
            self._process.stdin.flush()

    def answer(self) -> Any:
        """The value of the answer to the last command."""
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        reply = json.loads(answer) if answer else {"error": self._last_words()}
        if "error" in reply:
            self.failed = True
            raise PeerError(reply["error"])
        return reply["value"]

    def _last_words(self) -> str:
        self._process.wait()
        self._log.seek(0)
        lines = deque((line.strip() for line in self._log if line.strip()), maxlen=1)
        return lines[0] if lines else f"ended with exit code {self._process.returncode}"

    def run(self) -> float:
        """Seconds of one run."""
        return float(self.ask("run"))

    def outputs(self) -> dict[str, np.ndarray[Any, Any]]:
        """The outputs by name."""
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/outputs.npz"
            self.ask(f"outputs {path}")
            with np.load(path) as archive:
                return dict(archive)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()


class Served(Conversation):
    """A program that another process has set up and runs on request, so that runs can alternate."""

    def failed_check(self) -> str | None:
        """What the program's own check finds wrong; None if it is content."""
        answer = self.ask("check")
        return None if answer is None else str(answer)


class Without(Served):
    """A program that PyFuser fuses without some passes: names with commas between them."""

    def __init__(self, names: str, program: Path, size: int, space: str | None) -> None:
        arguments = [str(program.resolve()), str(size), space or ""]
        cache = str(SETTINGS.cache_dir / "without")  # first runs compile what the others have
        environment = {**os.environ, "PYFUSER_WITHOUT": names, "PYFUSER_CACHE_DIR": cache}
        super().__init__([sys.executable, "-c", _SERVE_FUSED, *arguments], env=environment)


_SERVE_FUSED = """
import pyfuser
pyfuser.enable()
from pyfuser.compare import serve
serve.main()
"""


class Peer(Served):
    """A program that another Python runs by its PyKokkos."""

    def __init__(self, python: str, program: Path, size: int, space: str | None) -> None:
        self._work = working_folder(program)
        self._work.mkdir(parents=True, exist_ok=True)
        script = str(Path(serve.__file__).resolve())
        command = [python, script, str(program.resolve()), str(size), space or ""]
        super().__init__(command, cwd=self._work, env=activated(python))

    def close(self) -> None:
        """End the other Python."""
        super().close()
        if self.failed:  # else the next one takes half a kernel for a whole one
            shutil.rmtree(self._work, ignore_errors=True)
