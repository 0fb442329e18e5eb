"""`python -m experiments.peers`: the options, and what is done with them."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from experiments.peers import program, report
from experiments.peers.contestants import CONTESTANTS, GPUS, of
from experiments.peers.measure import Options, Result, measure, steps
from pyfuser.support.settings import SETTINGS


def parser() -> argparse.ArgumentParser:
    """The options; `--help` documents them."""
    made = argparse.ArgumentParser(prog="python -m experiments.peers", description=__doc__)
    made.add_argument("--programs", nargs="+", default=program.names(), metavar="NAME")
    made.add_argument(
        "--peers", nargs="+", choices=CONTESTANTS, metavar="NAME",
        help=f"on the host any of {', '.join(of(None))}; on a GPU {', '.join(of('Cuda'))} (all)",
    )  # fmt: skip
    made.add_argument("--size", default="default", help="a number, or small, default, large or gpu")
    made.add_argument("--check-size", help="check results at this size (at the one measured)")
    made.add_argument("--space", choices=GPUS, help="measure on a GPU (on the host)")
    made.add_argument("--repeat", type=int, default=7, help="timed rounds (%(default)s)")
    made.add_argument("--threads", type=int, default=SETTINGS.threads, help="for each (all cores)")
    made.add_argument("--json", type=Path, metavar="FILE", help="write all raw times here")
    made.add_argument("--plot", type=Path, metavar="FILE", help="draw the ratios (PNG, SVG)")
    made.add_argument("--markdown", type=Path, metavar="FILE", help="write the table here")
    return made


def measured(options: Options, path: Path | None) -> list[Result]:
    """Measure behind a progress bar; after each program, write what there is to `path`."""
    results: list[Result] = []
    columns = TextColumn("{task.description:<32}"), BarColumn(), MofNCompleteColumn()
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task("starting", total=steps(options))

        def advance(what: str) -> None:
            progress.update(task, advance=1, description=what, refresh=True)

        for result in measure(options, advance):
            results.append(result)
            if path is not None:
                _write(path, json.dumps(report.as_json(results, options), indent=1) + "\n")
    return results


def main() -> int:
    """Measure, show, write; 1 if a peer's results differ from ours."""
    made = parser()
    given = made.parse_args()
    unknown = sorted(set(given.programs) - set(program.names()))
    if unknown or given.repeat < 1 or given.threads < 1:
        made.error(f"unknown programs {unknown}" if unknown else "expected at least 1")
    here = of(given.space)
    peers = here if given.peers is None else given.peers
    if not set(peers) <= set(here):
        made.error(f"--peers: expected any of {', '.join(here)}")
    options = Options(
        tuple(given.programs),
        tuple(peers),
        given.size,
        given.repeat,
        given.threads,
        given.space,
        given.check_size,
    )
    results = measured(options, given.json)
    console = Console()
    if not console.is_terminal:
        console = Console(width=220)  # a log wraps no rows
    console.print(report.table(results, options))
    if given.markdown is not None:
        _write(given.markdown, report.markdown(results, options))
    if given.plot is not None:
        report.save_plot(results, options, given.plot)
    return report.complain(results)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
