"""The command line: `pyfuser run`, `compare`, `explain`, `calibrate`, `info` and `cache`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path

import pyfuser
from pyfuser.compare import command, machine, programs, serve
from pyfuser.engine.compiler import find_compiler
from pyfuser.frontends.modes import fusing
from pyfuser.options import INTERRUPTED, Parser, check_space, check_writable, positive, source
from pyfuser.report import Explanation, explanation, since
from pyfuser.run import cache_command
from pyfuser.run import command as running
from pyfuser.run.flushes import FlushLog
from pyfuser.run.program import ScriptError
from pyfuser.runtime.program import Flush
from pyfuser.runtime.session import SESSION
from pyfuser.support import units
from pyfuser.support.errors import PyFuserError, UsageError
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.reason import PROGRAM_ENDS
from pyfuser.tuning.host import LIMITS, Known, known

BROKEN_PIPE = 141
"""The exit status of what wrote to a closed pipe, as shells give it for SIGPIPE."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code.

    1: results differ or a check failed; 2: wrong usage or a program that cannot be run.
    """
    try:
        options = _options(arguments)
        if options.run not in SCRIPTS:
            code = int(options.run(options))
            sys.stdout.flush()
            return code
    except (PyFuserError, serve.ProgramError) as error:
        print(f"pyfuser: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("pyfuser: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # as after `| head -1`: nobody reads the rest
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return _run(options)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options, of which `run` is what to call; ends the process for --help and wrong ones."""
    parser = _parser()
    given, rest = list(sys.argv[1:] if arguments is None else arguments), list[str]()
    if given[:1] == ["run"]:
        given[1:], rest = running.divided(given[1:])
    elif given[:2] == ["cache", "warm"] and given[2:] not in (["-h"], ["--help"]):
        given, rest = given[:2], given[2:]
    try:
        options, unknown = parser.parse_known_args(given)
        if unknown:
            options.parser.unknown(unknown)
        if options.run is None:
            parser.print_help(sys.stderr)
            parser.exit(2)
    finally:
        sys.stdout.flush()
    running.take(options, rest)
    if options.run is cache_command.command and options.action == "warm":
        options.run = cache_command.warm
    if options.run is _explain and not programs.is_program(source(options.program)):
        options.run = _explain_script
    return options


def _parser() -> Parser:
    parser = Parser(prog="pyfuser", description="Fuses PyKokkos workunits into few, large kernels.")
    version = machine.package_versions().get("pyfuser", "(not installed)")
    parser.add_argument("--version", action="version", version=f"pyfuser {version}")
    parser.set_defaults(run=None, parser=parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    run = commands.add_parser(
        "run",
        help="run an unmodified script or module, fused",
        usage="pyfuser run [options] (script.py | -m module) [arguments ...]",
        description="Runs a script or module as Python would, with its PyKokkos calls fused.",
        allow_abbrev=False,
    )
    running.add_arguments(run)
    run.set_defaults(run=running.command, parser=run)

    compare = commands.add_parser(
        "compare",
        help="time programs fused and unfused, and compare their results",
        description="Times programs fused and unfused in turns, and compares their results.",
    )
    command.add_arguments(compare)
    compare.set_defaults(run=command.run, parser=compare)

    explain = commands.add_parser(
        "explain",
        help="run a program; print what was fused, what not, and why",
        description="Runs a program twice (a script once) and prints what was fused, what was not, "
        "and why. Times are those of the second run.",
    )
    explain.add_argument(
        "program", type=Path, metavar="PROGRAM", help="a program as for compare, or any script"
    )
    explain.add_argument(
        "--size",
        default="small",
        help="small (if left out), default, large, another name of its SIZES, or a number",
    )
    explain.add_argument("--source", action="store_true", help="show each fused kernel's source")
    explain.add_argument(
        "--flushes",
        type=positive,
        default=64,
        help="cover only the latest N runs of recorded calls",
        metavar="N",
    )
    explain.add_argument(
        "--json", type=Path, metavar="FILE", help="write the report as JSON; -: print that instead"
    )
    explain.add_argument(
        "--html", type=Path, metavar="FILE", help="write the report as one HTML page"
    )
    explain.set_defaults(run=_explain, parser=explain)

    calibrate = commands.add_parser(
        "calibrate",
        help="measure this machine for the cost model (a few seconds)",
        description="Measures this machine, so that the cost model decides better what to fuse. "
        "Takes a few seconds, on an idle machine; kept in the cache directory.",
    )
    calibrate.add_argument("--space", help="Cuda or HIP: measure the GPU in place of the host")
    calibrate.set_defaults(run=_calibrate, parser=calibrate)

    info = commands.add_parser(
        "info",
        help="show processor, compiler, kernel cache and cost model",
        description="Shows processor, compiler, kernel cache and what the cost model expects of "
        "this machine.",
    )
    info.set_defaults(run=_info, parser=info)

    cache = commands.add_parser(
        "cache",
        help="compiled kernels and plans on disk: info, clear, warm SCRIPT",
        usage="pyfuser cache info | clear | warm (script.py | -m module) [arguments ...]",
        description="Shows or removes compiled kernels and plans, or runs a script once, so that "
        "they are there for later processes, and for other machines of this kind.",
        allow_abbrev=False,
    )
    cache_command.add_arguments(cache)
    cache.set_defaults(run=cache_command.command, parser=cache)
    return parser


def _run(options: argparse.Namespace) -> int:
    """Errors of the script's are the script's: only what keeps it from starting is ours."""
    try:
        return int(options.run(options))
    except (ScriptError, UsageError) as error:
        print(f"pyfuser: {error}", file=sys.stderr)
        return 2


def _explain(options: argparse.Namespace) -> int:
    _check_files(options)
    find_compiler(SETTINGS.compiler)
    (program,) = programs.load([options.program], options.size, None)
    before: list[Flush] = []
    with programs.errors_of(program.path), _report_alone(options):
        for _ in range(2):  # the first run pays for memory and threads that are new to the process
            state = program.module.setup(program.size)
            pyfuser.sync()
            before = SESSION.flushes[-1:]
            with fusing(PROGRAM_ENDS):
                program.module.run(state)
    found = since(before)
    latest = found[-options.flushes :]
    report = explanation(latest, options.source, earlier=len(found) - len(latest))
    if not _is_printed(options):
        print(report, flush=True)
    _write(options, report)
    return 0


def _is_printed(options: argparse.Namespace) -> bool:
    """Whether stdout is that of a file."""
    return "-" in map(str, (options.json, options.html))


@contextmanager
def _report_alone(options: argparse.Namespace) -> Iterator[None]:
    """What the program prints goes to stderr, kernels' `printf` too, if stdout is the report's."""
    if not _is_printed(options):
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _check_files(options: argparse.Namespace) -> None:
    """Raises UsageError, before anything runs, if a file that is asked for cannot be written."""
    for option, path in (("--json", options.json), ("--html", options.html)):
        if path is not None and str(path) != "-":
            check_writable(option, path)


def _write(options: argparse.Namespace, report: Explanation) -> None:
    """Write the files that are asked for, and say so."""
    for path, text in ((options.json, partial(_json, report)), (options.html, report.html)):
        if str(path) == "-":
            print(text(), end="")
        elif path is not None:
            path.write_text(text(), encoding="utf-8")
            print(f"wrote {path}", file=sys.stderr)


def _json(report: Explanation) -> str:
    return f"{json.dumps(report.tree(), indent=1)}\n"


def _explain_script(options: argparse.Namespace) -> int:
    """Run a script; the report goes to stderr, and the files have each kind of flush once."""
    _check_files(options)
    log = FlushLog(options.source)
    script = argparse.Namespace(script=str(options.program), arguments=[], module=None)
    script.no_fusion, script.space, script.json = False, None, None
    try:
        with _report_alone(options):
            return running.run_script(script, log)
    finally:
        if options.json or options.html:
            _write(options, explanation([flush for flush, _ in log.programs.values()]))


SCRIPTS = (running.command, _explain_script, cache_command.warm)
"""What runs a script, whose errors and exit status are its own."""


def _info(_: argparse.Namespace) -> int:
    facts = {**machine.describe(), "kernel cache": SETTINGS.cache_dir}
    for name, value in facts.items():
        print(f"{name:<13} {value}")
    print("\ncost model")
    print("\n".join(_constants(known())))
    return 0


def _calibrate(options: argparse.Namespace) -> int:
    """Measure the machine; 1 if it was too busy for some of it."""
    if options.space is not None:
        check_space(options.space, ("Cuda", "HIP"))
    found = pyfuser.calibrate(options.space)
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
    }
    for name, text in texts.items():
        origin = "measured" if name in found.measured else "default"
        yield f"{name:<13} {text} ({origin})"
    if found.path is not None:
        yield f"{'measured in':<13} {found.path}"
    elif SETTINGS.calibration:
        yield "`pyfuser calibrate` measures them"
