"""The options of `pyfuser compare`, and what it does with them."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyfuser.compare import machine, peer, report, scripts, serve
from pyfuser.compare.measure import Options, Result, measure, steps

if TYPE_CHECKING:
    from rich.console import Console

INTERRUPTED = 130
"""The exit status of what Ctrl-C ended."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options; `--help` documents them."""
    parser.add_argument("programs", nargs="+", type=Path, metavar="PROGRAM", help="a Python file")
    parser.add_argument(
        "--size", default="default", help="a number, or small, default or large (%(default)s)"
    )
    parser.add_argument(
        "--repeat", type=_positive, default=9, help="timed runs of each kind (%(default)s)"
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


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected at least 1")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Measure, show, write; 1 if a program's results differ or fail its check."""
    from rich.console import Console

    options = Options(
        size=arguments.size,
        repeat=arguments.repeat,
        space=arguments.space,
        check=arguments.check,
        check_size=arguments.check_size,
        peer_python=peer.find(arguments.pykokkos),
    )
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)  # a log wraps no rows
    others = [path for path in arguments.programs if not serve.is_program(path)]
    failed = _compare_scripts(others, options, arguments, console) if others else 0
    programs = [path for path in arguments.programs if path not in others]
    if not programs:
        return failed
    results: list[Result] = []
    try:
        for result in measured(programs, options):
            results.append(result)
            if arguments.json is not None:  # all so far: the rest may take long
                _write(report.as_json(results, options), arguments.json)
    except KeyboardInterrupt:
        print(f"pyfuser: interrupted in {programs[len(results)].stem}", file=sys.stderr)
        if not results:
            return INTERRUPTED
        failed = INTERRUPTED
    console.print(report.table(results))
    if arguments.json is not None:
        print(f"wrote {arguments.json}")
    if arguments.plot is not None:
        try:
            report.save_plot(results, arguments.plot)
            print(f"wrote {arguments.plot}")
        except ImportError:
            print("no plot: it needs matplotlib; pip install 'pyfuser[plot]'", file=sys.stderr)
    return max(failed, exit_code(results))


def _compare_scripts(
    paths: Sequence[Path], options: Options, arguments: argparse.Namespace, console: Console
) -> int:
    """Compare scripts that are not programs; 1 if the output of one differs."""
    given = shlex.split(arguments.arguments)
    results = []
    for path in paths:
        with console.status(path.stem):
            results.append(
                scripts.compare(path, options.repeat, options.space, given, options.peer_python)
            )
    console.print(scripts.table(results))
    if arguments.json is not None and len(paths) == len(arguments.programs):
        found = {"machine": machine.describe(), "scripts": [result.as_json() for result in results]}
        _write(found, arguments.json)
        print(f"wrote {arguments.json}")
    return int(any(result.difference is not None for result in results))


def _write(found: object, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def exit_code(results: Sequence[Result]) -> int:
    """1 and a line on stderr for each program whose fused results are wrong; else 0."""
    for result in results:
        if not result.correct:
            reason = result.check or f"fused and unfused results {result.difference}"
            print(f"pyfuser: {result.name}: {reason}", file=sys.stderr)
    return 0 if all(result.correct for result in results) else 1


def measured(programs: Sequence[Path], options: Options) -> Iterator[Result]:
    """Measure program after program behind a progress bar; in a log, with a line for each."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description:<40}"), BarColumn(), MofNCompleteColumn()
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task("", total=len(programs) * steps(options))
        for number, program in enumerate(programs, 1):

            def advance(what: str, name: str = program.stem) -> None:
                progress.update(task, advance=1, description=f"{name}: {what}", refresh=True)

            progress.update(task, description=f"{program.stem}: setting up", refresh=True)
            result = measure(program, options, advance)
            if not console.is_terminal and len(programs) > 1:
                said = f"{number} of {len(programs)}: {program.stem} {result.speedup:.2f}x"
                print(said, file=sys.stderr, flush=True)
            yield result
