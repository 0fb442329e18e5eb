"""The command line: `pyfuser run`, `compare`, `explain`, `calibrate` and `info`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pyfuser
from pyfuser import units
from pyfuser.compare import command, machine, serve
from pyfuser.driver import FLUSHES, Flush
from pyfuser.errors import PyFuserError
from pyfuser.machine import LIMITS, NEVER, Known, known
from pyfuser.report import Explanation, explanation, since
from pyfuser.run import command as running
from pyfuser.run.flushes import FlushLog
from pyfuser.run.program import ScriptError
from pyfuser.settings import SETTINGS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code.

    1: results differ or a check failed; 2: wrong usage or a program that cannot be run.
    """
    options = _parser().parse_args(arguments)
    if options.run is running.command:
        return _run(options)
    try:
        return int(options.run(options))
    except (PyFuserError, serve.ProgramError) as error:
        print(f"pyfuser: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pyfuser", description="Fuses PyKokkos workunits into few, large kernels."
    )
    version = machine.package_versions().get("pyfuser", "(not installed)")
    parser.add_argument("--version", action="version", version=f"pyfuser {version}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    run = commands.add_parser(
        "run",
        help="run a script that knows nothing of PyFuser, fused",
        description="Runs a script as Python would, with its PyKokkos calls recorded and fused.",
    )
    running.add_arguments(run)
    run.set_defaults(run=running.command)

    compare = commands.add_parser(
        "compare",
        help="time programs fused and unfused, and compare their results",
        description="Times programs fused and unfused in turns, and compares their results.",
    )
    command.add_arguments(compare)
    compare.set_defaults(run=command.run)

    explain = commands.add_parser(
        "explain",
        help="run a program and tell what was fused, what was not, and why",
        description="Runs a program twice (a script once) and tells what was fused, what was not, "
        "and why. Times are those of the second run.",
    )
    explain.add_argument("program", type=Path, help="a program as for compare, or any script")
    explain.add_argument("--size", default="small", help="as for compare (default: %(default)s)")
    explain.add_argument("--source", action="store_true", help="show each fused kernel's source")
    explain.add_argument(
        "--flushes", type=int, default=64, help="cover only the latest N flushes", metavar="N"
    )
    explain.add_argument("--json", metavar="FILE", help="write the report as JSON; - is stdout")
    explain.add_argument("--html", metavar="FILE", help="write the report as one HTML page")
    explain.set_defaults(run=_explain)

    calibrate = commands.add_parser(
        "calibrate", help="measure this machine, so that the cost model need not guess"
    )
    calibrate.add_argument("--space", help="Cuda or HIP: measure the GPU in place of the host")
    calibrate.set_defaults(run=_calibrate)

    info = commands.add_parser(
        "info", help="show the machine, the compiler, the kernel cache and the cost model"
    )
    info.set_defaults(run=_info)
    return parser


def _run(options: argparse.Namespace) -> int:
    """Errors of the script's are the script's: only what keeps it from starting is ours."""
    try:
        return running.command(options)
    except ScriptError as error:
        print(f"pyfuser: {error}", file=sys.stderr)
        return 2


def _explain(options: argparse.Namespace) -> int:
    if not serve.is_program(options.program):
        return _explain_script(options)
    module = serve.load(options.program)
    before: list[Flush] = []
    for _ in range(2):  # the first run pays for memory and threads that are new to the process
        state = module.setup(serve.size_of(module, options.size))
        pyfuser.sync()
        before = FLUSHES[-1:]
        with pyfuser.fusing():
            module.run(state)
    found = since(before)
    latest = found[-options.flushes :] if options.flushes > 0 else []
    report = explanation(latest, options.source, earlier=len(found) - len(latest))
    if not _write(options, report):
        print(report)
    return 0


def _write(options: argparse.Namespace, report: Explanation) -> bool:
    """Write the files that are asked for; whether stdout has the report already."""
    found = ((options.json, partial(_json, report)), (options.html, report.html))
    for name, text in found:
        if name == "-":
            print(text(), end="")
        elif name is not None:
            try:
                Path(name).write_text(text(), encoding="utf-8")
            except OSError as error:
                raise PyFuserError(f"cannot write {name}: {error.strerror}") from None
    return "-" in (options.json, options.html)


def _json(report: Explanation) -> str:
    return f"{json.dumps(report.tree(), indent=1)}\n"


class _ScriptLog(FlushLog):
    """The log of a script's flushes, which also writes the files that are asked for.

    They have each kind of flush once.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options.source)
        self._options = argparse.Namespace(json=options.json, html=options.html)

    def text(self) -> str:
        """The report, which goes to stderr."""
        if self._options.json or self._options.html:
            _write(self._options, explanation([flush for flush, _ in self.programs.values()]))
        return super().text()


def _explain_script(options: argparse.Namespace) -> int:
    log = _ScriptLog(options)
    options.script, options.arguments = str(options.program), []
    options.no_fusion, options.space, options.json = False, None, None
    return running.run_script(options, log)


def _info(_: argparse.Namespace) -> int:
    facts = {**machine.describe(), "kernel cache": SETTINGS.cache_dir}
    for name, value in facts.items():
        print(f"{name:<13} {value}")
    print("\ncost model")
    print("\n".join(_constants(known())))
    return 0


def _calibrate(options: argparse.Namespace) -> int:
    """Measure the machine; 1 if it was too busy for some of it."""
    try:
        found = pyfuser.calibrate(options.space)
    except ValueError as error:  # no such space, or not here
        raise PyFuserError(str(error)) from None
    print("\n".join(_constants(found)))
    missing = [name for name in LIMITS if name not in found.measured]
    if missing and SETTINGS.calibration:
        print(
            f"pyfuser: the machine is too busy to measure {', '.join(missing)}: the default is "
            "used; run this again when nothing else runs",
            file=sys.stderr,
        )
    return 1 if missing and SETTINGS.calibration else 0


def _constants(found: Known) -> Iterator[str]:
    """What the cost model knows, and where from."""
    machine = found.machine
    texts = {
        "launch": units.seconds(machine.launch),
        "bandwidth": f"{units.digits(machine.bandwidth / 1e9)} GB/s",
        "streams": f"{machine.streams} arrays in a loop before it slows down",
        "crowding": f"{100 * machine.crowding:.3g}% slower for each array more",
        "gathering": f"{100 * machine.gathering:.3g}% slower if a gather is fused",
        "cache": f"{units.size(machine.cache)} for a core",
        "streaming": "never"
        if machine.streaming == NEVER
        else f"stores of {units.size(machine.streaming)} or more go past the caches",
    }
    for name, text in texts.items():
        origin = "measured" if name in found.measured else "default"
        yield f"{name:<13} {text} ({origin})"
    if found.path is not None:
        yield f"{'measured in':<13} {found.path}"
    elif SETTINGS.calibration:
        yield "`pyfuser calibrate` measures them"
