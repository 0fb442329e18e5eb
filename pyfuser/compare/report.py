"""A comparison as a table, as JSON and as a bar chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyfuser.compare import machine
from pyfuser.compare.measure import Options, Result, Variant
from pyfuser.compare.summary import geometric_mean, speedup, spread
from pyfuser.machine import processor
from pyfuser.settings import SETTINGS
from pyfuser.units import digits, seconds, time_unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

FUSED_COLOUR, MEAN_COLOUR = "#2f6db3", "#c0392b"


def mean_speedup(results: Sequence[Result]) -> float:
    """The geometric mean of the programs' speedups."""
    return geometric_mean([result.speedup for result in results])


def _times(variant: Variant) -> str:
    values = spread(variant.times)
    _, factor = time_unit(values.median)
    low, high = digits(values.low * factor), digits(values.high * factor)
    return f"{seconds(values.median)} [dim]({low}-{high})[/dim]"


def _verdict(result: Result) -> str:
    text = str(result.difference)
    if not result.difference.acceptable:
        text = f"[bold red]{text}[/]"
    if result.check is not None:
        return f"{text}, [bold red]check failed[/]"
    return f"{text}, correct" if result.checked else text


def _peer_times(result: Result) -> str:
    if result.peer is None:
        return ""
    if result.peer.error is not None:
        return f"[dim]{result.peer.error[:40]}[/dim]"
    return _times(result.peer.variant)


def table(results: Sequence[Result]) -> Table:
    """One row a program and, below several, the geometric mean."""
    from rich.table import Table

    with_peer = any(result.peer is not None for result in results)
    made = Table(
        title="Fused against unfused: median (min-max) of one run",
        caption=f"{processor()}, {SETTINGS.threads} threads",
    )
    made.add_column("program", no_wrap=True)
    for heading in ("size", "unfused", "fused", "speedup", "launches", "first run"):
        made.add_column(heading, justify="right", no_wrap=heading != "size")
    made.add_column("fused results")
    if with_peer:
        made.add_column("installed PyKokkos", justify="right")
    for result in results:
        row = [
            result.name,
            f"{result.size:,}",
            _times(result.unfused),
            _times(result.fused),
            f"[bold]{result.speedup:.2f}x[/bold]",
            f"{result.unfused.launches:,} -> {result.fused.launches:,}",
            seconds(result.fused.first),
            _verdict(result),
        ]
        made.add_row(*row, *([_peer_times(result)] if with_peer else []))
    if len(results) > 1:
        made.add_section()
        made.add_row("geometric mean", "", "", "", f"[bold]{mean_speedup(results):.2f}x[/bold]")
    return made


def as_json(results: Sequence[Result], options: Options) -> dict[str, Any]:
    """Everything that was measured: machine, versions, options and all raw times in seconds."""
    return {
        "machine": machine.describe(),
        "options": asdict(options),
        "programs": [_program_json(result) for result in results],
        "geometric_mean_speedup": mean_speedup(results) if results else None,
    }


def _program_json(result: Result) -> dict[str, Any]:
    made = asdict(result)
    made["speedup"] = result.speedup
    made["correct"] = result.correct
    if result.peer is not None and result.peer.error is None:
        made["peer"]["speedup"] = speedup(result.peer.variant.times, result.fused.times)
    return made


def figure(results: Sequence[Result]) -> Figure:
    """A bar for each program's speedup, labelled, and a line at their geometric mean.

    Raises ImportError if matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    made = Figure(figsize=(8, 1.6 + 0.42 * len(results)), layout="constrained")
    axes = made.add_subplot()
    speedups = [result.speedup for result in results]
    bars = axes.barh([result.name for result in results], speedups, color=FUSED_COLOUR)
    labels = [
        f"{value:.2f}x  ({seconds(spread(result.unfused.times).median)} -> "
        f"{seconds(spread(result.fused.times).median)})"
        for value, result in zip(speedups, results, strict=True)
    ]
    for label in axes.bar_label(bars, labels, padding=4, fontsize=8):
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
    axes.axvline(1.0, color="black", linewidth=0.8, zorder=0)
    if results:
        mean = mean_speedup(results)
        axes.axvline(
            mean, color=MEAN_COLOUR, linestyle="--", zorder=0, label=f"geometric mean {mean:.2f}x"
        )
        axes.legend(loc="lower right", fontsize=8)
        axes.set_xlim(0, 1.45 * max(*speedups, 1.0))
    axes.margins(y=0.02)
    axes.invert_yaxis()  # the first program on top
    axes.set_xlabel("speedup of fused over unfused (higher is better)")
    axes.set_title(f"PyFuser on {processor()}, {SETTINGS.threads} threads", size=10)
    axes.spines[["top", "right"]].set_visible(False)
    return made


def save_plot(results: Sequence[Result], path: Path) -> None:
    """Write `figure` in the format that the path's suffix names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure(results).savefig(path, dpi=150)
