"""The options of `pyfuser compare`, and what it does with them."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyfuser.compare import machine, peer, plot, report, scripts
from pyfuser.compare.measure import Options, Result, measure, steps
from pyfuser.compare.programs import Program, divided, errors_of, load
from pyfuser.compare.scripts import ScriptResult
from pyfuser.compare.serve import ProgramError
from pyfuser.engine.compiler import find_compiler
from pyfuser.options import INTERRUPTED, check_writable, meant, positive, use_space
from pyfuser.pipeline import NAMES
from pyfuser.support.errors import UsageError
from pyfuser.support.settings import SETTINGS

if TYPE_CHECKING:
    from rich.console import Console, Group

DEFAULT_SIZE = "default"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options; `--help` documents them."""
    parser.add_argument("programs", nargs="+", type=Path, metavar="PROGRAM", help="a Python file")
    parser.add_argument(
        "--size",
        default=DEFAULT_SIZE,
        help="small, default (if left out), large, another name of its SIZES, or a number",
    )
    parser.add_argument(
        "--repeat", type=positive, default=9, help="timed runs of each kind (%(default)s)"
    )
    parser.add_argument(
        "--arguments", default="", metavar="TEXT", help="what scripts are run with, as in a shell"
    )
    parser.add_argument("--space", help="execution space, such as OpenMP or Serial")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all raw times here")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the speedups (PNG, SVG)")
    parser.add_argument(
        "--check",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="run the programs' own checks on the fused results (on)",
    )
    parser.add_argument(
        "--check-size",
        metavar="SIZE",
        help="check a fused run of this size instead: a reference in NumPy takes its time",
    )
    parser.add_argument(
        "--pykokkos",
        metavar="PYTHON",
        help="also run in this Python by its PyKokkos ($PYFUSER_PYKOKKOS_PYTHON)",
    )

    parser.add_argument(
        "--without",
        default="",
        metavar="PASS",
        help="also run fused without this pass, or several with commas between them",
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure, show, write; 1 if a program's results differ or fail its check.

    Raises UsageError or ProgramError for options and files that cannot be used, before it measures.
    """
    from rich.console import Console

    programs, paths = _prepared(arguments)
    options = Options(
        size=arguments.size,
        repeat=arguments.repeat,
        space=arguments.space,
        check=arguments.check,
        check_size=arguments.check_size,
        peer_python=None if arguments.without else peer.find(arguments.pykokkos),
        without=arguments.without,
    )
    console = Console()
    ended, of_scripts = _compare_scripts(paths, options, arguments, console)
    code, results = 0, list[Result]()
    if ended in (0, 1):
        code, results = _compare_programs(programs, options, arguments, of_scripts)
    written = []
    if arguments.json is not None and (results or of_scripts):
        _write(_facts(results, of_scripts, options), arguments.json)
        written.append(arguments.json)
    if arguments.plot is not None and results:
        plot.save(results, arguments.plot)
        written.append(arguments.plot)
    if results:
        show(report.table(results, console, options.without), console)
    for path in written:
        print(f"wrote {path}")
    return max(ended, code, exit_code(results))


def _prepared(arguments: argparse.Namespace) -> tuple[list[Program], list[Path]]:
    """The programs, loaded, and the other scripts, after a look at everything that was given."""
    paths, scripts = divided(arguments.programs)
    for option in ("json", "plot"):
        check_writable(f"--{option}", getattr(arguments, option))
    if arguments.plot is not None:
        plot.check(arguments.plot)
        if not paths:
            raise UsageError("--plot draws programs with SIZES, setup and run; these are scripts")
    if arguments.arguments and not scripts:
        raise UsageError("--arguments are for scripts; these are programs with setup and run")
    if not paths and arguments.size != DEFAULT_SIZE:
        raise UsageError("--size is for programs with SIZES; what scripts are given is --arguments")
    _words(arguments.arguments)
    _check_without(arguments, scripts)
    python = peer.find(arguments.pykokkos)
    if python is not None and shutil.which(python) is None:
        raise UsageError(f"--pykokkos {python}: no such Python; give the path of an interpreter")
    use_space(arguments.space)
    find_compiler(SETTINGS.compiler)
    return load(paths, arguments.size, arguments.check_size), scripts


def _check_without(arguments: argparse.Namespace, scripts: Sequence[Path]) -> None:
    for name in filter(None, arguments.without.split(",")):
        if name not in NAMES:
            near = meant(name, NAMES) or f"; passes are {', '.join(NAMES)}"
            raise UsageError(f"--without {name}: no such pass{near}")
    if arguments.without and (arguments.pykokkos or scripts):
        other = "--pykokkos" if arguments.pykokkos else f"scripts such as {scripts[0]}"
        raise UsageError(f"--without cannot be used with {other}")


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--arguments {text}: {str(error).lower()}") from None


def show(table: Group, console: Console) -> None:
    """Print a table so that a closed pipe raises BrokenPipeError, as of any other text."""
    with console.capture() as captured:
        console.print(table)
    print(captured.get(), end="")


def _compare_programs(
    programs: Sequence[Program],
    options: Options,
    arguments: argparse.Namespace,
    of_scripts: Sequence[ScriptResult],
) -> tuple[int, list[Result]]:
    """Measure; when that is interrupted or a program fails, what was measured by then."""
    results: list[Result] = []
    try:
        for result in measured(programs, options):
            results.append(result)
            if arguments.json is not None:  # all so far: the rest may take long
                _write(_facts(results, of_scripts, options), arguments.json)
    except KeyboardInterrupt:
        print(f"pyfuser: interrupted in {programs[len(results)].name}", file=sys.stderr)
        return INTERRUPTED, results
    except ProgramError as error:
        print(f"pyfuser: {error}", file=sys.stderr)
        return 2, results
    return 0, results


def _compare_scripts(
    paths: Sequence[Path], options: Options, arguments: argparse.Namespace, console: Console
) -> tuple[int, list[ScriptResult]]:
    """Compare scripts that are not programs; 1 if the output of one differs."""
    from rich.console import Console

    given, results = _words(arguments.arguments), []
    code = 0
    try:
        for path in paths:
            with Console(stderr=True).status(path.stem):
                results.append(
                    scripts.compare(path, options.repeat, options.space, given, options.peer_python)
                )
    except KeyboardInterrupt:
        print(f"pyfuser: interrupted in {paths[len(results)]}", file=sys.stderr)
        code = INTERRUPTED
    except UsageError as error:
        print(f"pyfuser: {error}", file=sys.stderr)
        code = 2
    if results:
        show(scripts.table(results, console), console)
    return code or int(any(result.difference is not None for result in results)), results


def _facts(
    results: Sequence[Result], of_scripts: Sequence[ScriptResult], options: Options
) -> dict[str, object]:
    """What --json writes."""
    found: dict[str, object] = {"machine": machine.describe()}
    if results:
        found = report.as_json(results, options)
    if of_scripts:
        found["scripts"] = [result.as_json() for result in of_scripts]
    return found


def _write(found: object, path: Path) -> None:
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def exit_code(results: Sequence[Result]) -> int:
    """1 and a line on stderr for each program whose fused results are wrong; else 0."""
    for result in results:
        if not result.correct:
            reason = result.check or f"fused and unfused results {result.difference}"
            print(f"pyfuser: {result.name}: {reason}", file=sys.stderr)
    return 0 if all(result.correct for result in results) else 1


def measured(programs: Sequence[Program], options: Options) -> Iterator[Result]:
    """Measure program after program behind a progress bar; in a log, with a line for each."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description:<34}"), BarColumn(), MofNCompleteColumn()
    console = Console(stderr=True)
    shown = Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with shown as progress:
        task = progress.add_task("", total=len(programs) * steps(options))
        for number, program in enumerate(programs, 1):

            def advance(what: str, name: str = program.name) -> None:
                progress.update(task, advance=1, description=f"{name}: {what}", refresh=True)

            progress.update(task, description=f"{program.name}: setting up", refresh=True)
            with errors_of(program.path):
                result = measure(program, options, advance)
            if not console.is_terminal and len(programs) > 1:
                said = f"{number} of {len(programs)}: {program.name} {result.speedup:.2f}x"
                print(said, file=sys.stderr, flush=True)
            yield result
