"""A comparison as a table that fits the terminal, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING, Any

from pyfuser.compare import machine
from pyfuser.compare.measure import Options, Result
from pyfuser.compare.summary import (
    CONFIDENCE,
    Interval,
    geometric_mean,
    median_interval,
    ratios,
    speedup,
)
from pyfuser.support.settings import SETTINGS
from pyfuser.support.units import seconds
from pyfuser.tuning.host import processor

if TYPE_CHECKING:
    from rich.console import Console, Group, RenderableType
    from rich.table import Table

TEXTS = ("program", "script", "results", "output", "PyKokkos")
"""The columns of words, on the left side of their space; the others are numbers."""

LESS = ("first run", "size", "launches")
"""The columns that a narrow terminal can do without, the most dispensable first."""


UNLIMITED = 10_000  # columns


def mean_speedup(results: Sequence[Result]) -> float:
    """The geometric mean of the programs' speedups."""
    return geometric_mean([result.speedup for result in results])


def digits(ratio: float) -> str:
    """Three digits and no fewer: 4.70, 16.9, 120."""
    return f"{ratio:.{2 if ratio < 9.995 else 1 if ratio < 99.95 else 0}f}"


def with_interval(ratio: float, interval: Interval) -> str:
    """A speedup in bold, and the ends of its interval; of one pair there is none."""
    if interval.confidence == 0.0:
        return f"[bold]{digits(ratio)}x[/]"
    return f"[bold]{digits(ratio)}x[/] {digits(interval.low)}-{digits(interval.high)}"


def _without_interval(ratio: float, above: Sequence[str]) -> RenderableType:
    """A mean, below the speedups of a column and not below their intervals."""
    from rich.padding import Padding

    beside = max(len(cell.partition("[/]")[2]) for cell in above)
    return Padding(f"[bold]{digits(ratio)}x[/]", (0, beside, 0, 0))


def explained(interval: Interval, pairs: int) -> str:
    """What a speedup and its interval are."""
    what = f"speedup: median of {pairs} pairs of runs in turns" if pairs > 1 else "speedup: one run"
    if pairs == 1:
        return what
    if interval.confidence >= CONFIDENCE:
        return f"{what}, with its 95% interval"
    return f"{what}, with the lowest and the highest"


def _verdict(result: Result) -> str:
    if not result.difference.acceptable:
        return f"[bold red]{result.difference}[/]"
    if result.check is not None:
        return "[bold red]check failed[/]"
    return (
        "same bits" if result.difference.identical else f"within {result.difference.relative:.0e}"
    )


def _peer_time(result: Result) -> str:
    if result.peer is None:
        return ""
    if result.peer.error is not None:
        return f"[dim]{result.peer.error[:40]}[/dim]"
    return seconds(median(result.peer.variant.times))


def without_over_fused(result: Result) -> float:
    """The time without the passes that were left out, as a multiple of that with all; nan: none."""
    if result.peer is None or result.peer.error is not None:
        return math.nan
    return speedup(result.peer.variant.times, result.fused.times)


def _without(result: Result) -> str:
    if result.peer is None or result.peer.error is not None:
        return _peer_time(result)
    verdict = (
        "" if result.peer.difference and result.peer.difference.acceptable else " [red]differs"
    )
    ratios_of = ratios(result.peer.variant.times, result.fused.times)
    return with_interval(without_over_fused(result), median_interval(ratios_of)) + verdict


def _caption(results: Sequence[Result]) -> str:
    checked = all(result.checked and result.check is None for result in results)
    return "\n".join(
        (
            explained(results[0].interval, len(results[0].fused.times)),
            "results: fused against unfused" + "; all pass their own checks" * checked,
            f"{processor()}, {SETTINGS.threads} threads",
        )
    )


def table(results: Sequence[Result], console: Console, without: str = "") -> Group:
    """One row a program and, below several, the geometric mean; as wide as the console at most.

    without: the passes that were left out in a third kind of runs.
    """
    columns = {
        "program": [result.name for result in results],
        "size": [f"{result.size:,}" for result in results],
        "unfused": [seconds(median(result.unfused.times)) for result in results],
        "fused": [seconds(median(result.fused.times)) for result in results],
        "speedup": [with_interval(result.speedup, result.interval) for result in results],
        "launches": [
            f"{result.unfused.launches:,} -> {result.fused.launches:,}" for result in results
        ],
        "first run": [seconds(result.fused.first) for result in results],
        "results": [_verdict(result) for result in results],
    }
    if without:
        columns["without"] = [_without(result) for result in results]
    elif any(result.peer is not None for result in results):
        columns["PyKokkos"] = [_peer_time(result) for result in results]
    last: dict[str, RenderableType] = {}
    if len(results) > 1:
        last = {
            "program": "geometric mean",
            "speedup": _without_interval(mean_speedup(results), columns["speedup"]),
        }
        known = [each for each in map(without_over_fused, results) if not math.isnan(each)]
        if without and known:
            last["without"] = _without_interval(geometric_mean(known), columns["without"])
    caption = _caption(results)
    if without:
        caption += f"\nwithout: time without {without}, as a multiple of the fused time"
    return fitted(columns, last, "Times of one run, unfused and fused", caption, console)


def fitted(
    columns: Mapping[str, Sequence[str]],
    last: Mapping[str, RenderableType],
    title: str,
    caption: str,
    console: Console,
) -> Group:
    """A table of columns by name, with less of them and of the space between where need be.

    last: the cells of a row below the others, if there are any.
    """
    from rich.console import Group
    from rich.text import Text

    for padding, dropped in ((1, 0), (1, 1), (1, 2), (0, 2), (0, 3)):
        names = [name for name in columns if name not in LESS[:dropped]]
        made = _drawn(names, columns, last, padding)
        wanted = console.measure(made, options=console.options.update(max_width=UNLIMITED))
        if wanted.maximum <= console.width:
            break
    return Group(Text(title, "bold"), made, Text(caption, "dim"))


def _drawn(
    names: Sequence[str],
    columns: Mapping[str, Sequence[str]],
    last: Mapping[str, RenderableType],
    padding: int,
) -> Table:
    from rich import box
    from rich.table import Table

    made = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 0, 0, padding),
    )
    for name in names:
        made.add_column(name, justify="left" if name in TEXTS else "right", overflow="fold")
    for row in zip(*(columns[name] for name in names), strict=True):
        made.add_row(*row)
    if last:
        made.add_section()
        made.add_row(*(last.get(name, "") for name in names))
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
    made["speedup_interval"] = asdict(result.interval)
    made["correct"] = result.correct
    if result.peer is not None and result.peer.error is None:
        made["peer"]["speedup"] = speedup(result.peer.variant.times, result.fused.times)
    return made
