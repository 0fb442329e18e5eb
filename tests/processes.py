"""Python processes of tests, forked from one that has imported the package already.

A start costs 0.3 s, nearly all of it imports, and tests make hundreds. The package reads its
settings while it is imported: each set of them has a server of its own once it comes again. Tests
of how Python or the package starts, and of its flags, begin at the beginning: `real`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import weakref
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
TIME_LIMIT = 120.0  # seconds
_SERVERS = 3
_IMPORTED = ("PYFUSER", "PYTHON", "OMP_")  # variables that are read while Python or pyfuser starts

_SERVER = """
import builtins, json, os, runpy, socket, sys, types
import islpy, numpy
import pyfuser.cli, pyfuser.plan.search


def request():
    # What is asked for, in a child; the server itself never returns.
    connection = socket.socket(fileno=int(sys.argv[1]))
    for line in connection.makefile():
        pid = os.fork()
        if not pid:
            connection.close()
            return json.loads(line)
        connection.sendall(b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os._exit(0)


def begin(given, main):
    # As the interpreter does.
    first, *rest = given
    sys.argv, sys.path[0] = [first, *rest[first in ("-m", "-c"):]], ""
    if first == "-m":
        sys.path[0] = os.getcwd()
        runpy._run_module_as_main(rest[0])
    elif first == "-c":
        exec(compile(rest[0], "<string>", "exec"), main)
    else:
        main["__file__"] = os.path.abspath(first)
        sys.path[0] = os.path.dirname(os.path.realpath(first))
        with open(first, "rb") as file:
            code = compile(file.read(), main["__file__"], "exec")
        exec(code, main)


def run(given, cwd, folder, environment, path):
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        file = os.open(f"{folder}/{name}", os.O_RDWR | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[1:1] = path
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__builtins__ = builtins
    try:
        begin(given, vars(main))
    except Exception as error:
        trace = error.__traceback__
        while trace and trace.tb_frame.f_globals is globals():
            trace = trace.tb_next
        told = type(error), error.with_traceback(trace), trace
        sys.last_type, sys.last_value, sys.last_traceback = told
        sys.excepthook(*told)
        sys.exit(1)


run(**request())
"""


class _Server:
    """A process that has imported the package, and forks; it ends with its connection."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.connection, other = socket.socketpair()
        self.connection.settimeout(TIME_LIMIT)
        self.answers = self.connection.makefile()
        with other:
            self.process = process = subprocess.Popen(
                [sys.executable, "-c", _SERVER, str(other.fileno())],
                env=environment, cwd=ROOT, pass_fds=[other.fileno()], start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        self.end = weakref.finalize(self, lambda: (process.kill(), process.wait()))

    def run(self, **request: object) -> int:
        self.connection.sendall(f"{json.dumps(request)}\n".encode())
        return int(self.answers.readline())


_came: dict[frozenset[tuple[str, str]], _Server | None] = {}


def servers() -> set[int]:
    """The ids of the processes that fork others; they stay."""
    return {server.process.pid for server in _came.values() if server is not None}


def python(
    *given: object, cwd: Path = ROOT, stdin: str = "", check: bool = False, **variables: str
) -> subprocess.CompletedProcess[str]:
    """`python given` of a script, -m or -c; `variables` are set in its environment."""
    environment = {**os.environ, **variables}
    path = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *path])
    read = {item for item in environment.items() if item[0].startswith(_IMPORTED)}
    key = frozenset(item for item in read if item[0] != "PYTHONPATH")
    flags = str(given[0]).startswith("-") and given[0] not in ("-m", "-c")
    if flags or (key not in _came and variables.keys() & {name for name, _ in key}):
        _came.setdefault(key, None)
        return real(*given, cwd=cwd, stdin=stdin, check=check, **variables)
    server = _came.pop(key, None)
    while server is None and sum(each is not None for each in _came.values()) >= _SERVERS:
        oldest = next(key for key, each in _came.items() if each is not None)
        _came.pop(oldest).end()  # type: ignore[union-attr]
    _came[key] = server = server or _Server({**environment, "PYTHONPATH": str(ROOT)})
    words = [str(each) for each in given]
    with TemporaryDirectory() as folder:
        files = {name: Path(folder, name) for name in ("stdin", "stdout", "stderr")}
        for name, file in files.items():
            file.write_text(stdin if name == "stdin" else "", encoding="utf-8")
        status = server.run(
            given=words, cwd=str(cwd), folder=folder, environment=environment, path=path
        )
        out, err = (files[name].read_text(encoding="utf-8") for name in ("stdout", "stderr"))
    return _checked(subprocess.CompletedProcess(words, status, out, err), check)


def real(
    *given: object, cwd: Path = ROOT, stdin: str = "", check: bool = False, **variables: str
) -> subprocess.CompletedProcess[str]:
    """The same, in a process that begins at the beginning."""
    environment = {**os.environ, **variables}
    path = [str(ROOT), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    done = subprocess.run(
        [sys.executable, *map(str, given)], input=stdin, capture_output=True, text=True, cwd=cwd,
        env=environment, check=False, timeout=TIME_LIMIT,
    )  # fmt: skip
    return _checked(done, check)


def _checked(
    done: subprocess.CompletedProcess[str], check: bool
) -> subprocess.CompletedProcess[str]:
    assert not (check and done.returncode), f"{done.args}: {done.stdout}{done.stderr}"
    return done
