"""What was measured as a table, as Markdown, as JSON and as a plot."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from experiments.peers.contestants import CONTESTANTS, LABELS, NOT_INSTALLED, NOT_WRITTEN
from experiments.peers.measure import EVEN, Column, Options, Result
from pyfuser.compare import machine
from pyfuser.compare.report import seconds
from pyfuser.compare.summary import spread

PACKAGES = ("numba", "jax", "numexpr", "scipy", "torch")


def complain(results: Sequence[Result]) -> int:
    """1 and a line on stderr for each peer whose results are wrong; else 0."""
    wrong = [
        f"{result.name}: {LABELS[name]}: {column.check}"
        for result in results
        for name, column in result.columns.items()
        if column.check is not None and not _may_differ(name)
    ]
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def _may_differ(name: str) -> bool:
    return name in CONTESTANTS and CONTESTANTS[name].fastmath


def verdict(result: Result) -> str:
    """Who is ahead, and by how much."""
    best = result.best_peer()
    if best is None:
        return ""
    ratio = result.ahead(best)
    if ratio > 1 + EVEN:
        return f"PyFuser {ratio:.2f}x before {LABELS[best]}"
    if ratio < 1 - EVEN:
        return f"{LABELS[best]} {1 / ratio:.2f}x before PyFuser"
    return f"even with {LABELS[best]}"


def headings(options: Options) -> list[str]:
    """The columns of the table."""
    peers = [LABELS[peer] for peer in options.peers]
    return ["program", "floor", "fused", "fused/floor", "unfused", *peers, "ahead"]


def rows(results: Sequence[Result], options: Options) -> list[list[str]]:
    """A row a program: times in their unit, peers with how much longer than fused they take."""
    made = []
    for result in results:
        floor = result.floor
        fused = median(result.columns["fused"].times)
        others = [_cell(result, name) for name in ("unfused", *options.peers)]
        made.append([
            result.name,
            seconds(floor) if floor else "-",
            _times(result.columns["fused"]),
            f"{fused / floor:.1f}" if floor else "-",
            *others,
            verdict(result),
        ])  # fmt: skip
    return made


def _times(column: Column) -> str:
    values = spread(column.times)
    return f"{seconds(values.median)} ({(values.high - values.low) / values.median:.0%})"


def _cell(result: Result, name: str) -> str:
    column = result.columns[name]
    if column.error is not None:
        if NOT_INSTALLED in column.error:
            return "not installed"
        return "-" if column.error == NOT_WRITTEN else "failed"
    wrong = " wrong" if column.check is not None else ""
    return f"{seconds(median(column.times))} {result.ahead(name):.2f}x{wrong}"


def first_rows(results: Sequence[Result], options: Options) -> list[list[str]]:
    """A row a program: building and the first run, compilation included."""
    return [
        [
            result.name,
            *(
                "-" if column.error is not None else seconds(column.first)
                for column in (result.columns[name] for name in ("fused", *options.peers))
            ),
        ]
        for result in results
    ]


def table(results: Sequence[Result], options: Options) -> Table:
    """The rows for a terminal."""
    made = Table(
        title="median of one run (spread); x: how much longer than PyFuser, fused",
        caption=f"{_processor(results, options)}; floor: bytes that must move "
        "over the bandwidth of a copy in the same rounds",
    )
    for number, heading in enumerate(headings(options)):
        made.add_column(heading, justify="left" if number == 0 else "right")
    for row in rows(results, options):
        made.add_row(*row)
    return made


def markdown(results: Sequence[Result], options: Options) -> str:
    """Both tables, with the machine and the versions."""
    facts = ", ".join(f"{key} {value}" for key, value in _machine(results, options).items())
    first = ["program", "PyFuser", *(LABELS[peer] for peer in options.peers)]
    return "\n\n".join([
        f"Measured on: {facts}.",
        _pipes(headings(options), rows(results, options)),
        "The first call, with everything that it compiles:",
        _pipes(first, first_rows(results, options)),
    ]) + "\n"  # fmt: skip


def _processor(results: Sequence[Result], options: Options) -> str:
    """What the programs ran on."""
    devices = [result.device for result in results if result.device is not None]
    return devices[0] if devices else f"{machine.processor()}, {options.threads} threads"


def _pipes(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _machine(results: Sequence[Result], options: Options) -> dict[str, str | int]:
    found = machine.describe()
    found["threads"] = options.threads
    for device in {result.device for result in results if result.device is not None}:
        found["gpu"] = device
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def as_json(results: Sequence[Result], options: Options) -> dict[str, Any]:
    """Everything that was measured, times in seconds."""
    programs = [
        {
            **asdict(result),
            "floor": result.floor,
            "verdict": verdict(result),
            "ratio_to_fused": {
                name: result.ahead(name)
                for name, column in result.columns.items()
                if column.error is None
            },
        }
        for result in results
    ]
    return {"machine": _machine(results, options), "options": asdict(options), "programs": programs}


def save_plot(results: Sequence[Result], options: Options, path: Path) -> None:
    """Each contestant's time over our fused time, a row a program, on a logarithmic axis.

    Raises ImportError if matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1.8 + 0.34 * len(results)), layout="constrained")
    axes = figure.add_subplot()
    axes.axvline(1.0, color="#2f6db3", linewidth=2, zorder=0, label="PyFuser, fused")
    for number, name in enumerate(("unfused", *options.peers)):
        points = [
            (result.ahead(name), row)
            for row, result in enumerate(results)
            if result.columns[name].error is None
        ]
        if points:
            marker = "os^DvPX*<>"[number % 10]
            x, y = zip(*points, strict=True)
            axes.scatter(x, y, s=26, marker=marker, label=LABELS[name])
    floors = [
        (result.floor / median(result.columns["fused"].times), row)
        for row, result in enumerate(results)
        if result.floor
    ]
    if floors:
        x, y = zip(*floors, strict=True)
        axes.scatter(x, y, s=120, marker="|", color="black", label="floor")
    axes.set_xscale("log")
    axes.set_yticks(range(len(results)), [result.name for result in results])
    axes.invert_yaxis()
    axes.grid(axis="x", which="both", linewidth=0.3)
    axes.set_xlabel("time over PyFuser's fused time (left of 1: faster than PyFuser)")
    axes.set_title(f"{_processor(results, options)}", size=10)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
