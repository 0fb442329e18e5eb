"""A comparison as a bar chart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyfuser.compare import report
from pyfuser.compare.measure import Result
from pyfuser.compare.summary import spread
from pyfuser.support.errors import UsageError
from pyfuser.support.settings import SETTINGS
from pyfuser.support.units import digits, time_unit
from pyfuser.tuning.host import processor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Of M. Okabe and K. Ito's palette, whose colours people with any colour vision tell apart.
GAIN, LOSS, MEAN = "#0072b2", "#d55e00", "#555555"
LONGEST = 26  # characters of a name
LOGARITHMIC = 5.0  # from here on, the largest over the smallest ratio makes the axis logarithmic


def check(path: Path) -> None:
    """Raise UsageError if no plot can be written in the format that the suffix names."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise UsageError("--plot needs matplotlib: pip install matplotlib") from None
    kinds = FigureCanvasBase.get_supported_filetypes()
    kind = path.suffix.removeprefix(".").lower()
    if kind not in kinds:
        what = f"a file of kind {path.suffix}" if kind else "a file without a suffix"
        raise UsageError(f"--plot {path}: {what} cannot be drawn; use .png, .svg or .pdf")


def figure(results: Sequence[Result]) -> Figure:
    """A bar from 1 to each program's speedup, the largest on top, with its interval and times.

    A dashed line is their geometric mean. `results` must not be empty. Raises ImportError if
    matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    ordered = sorted(results, key=lambda result: result.speedup)
    made = Figure(figsize=(8, 1.3 + 0.24 * len(ordered)), layout="constrained")
    axes = made.add_subplot()
    places = range(len(ordered))
    speedups = [result.speedup for result in ordered]
    axes.barh(
        places,
        [value - 1.0 for value in speedups],
        left=1.0,
        height=0.7,
        color=[GAIN if value >= 1.0 else LOSS for value in speedups],
    )
    errors = [
        [value - result.interval.low for value, result in zip(speedups, ordered, strict=True)],
        [result.interval.high - value for value, result in zip(speedups, ordered, strict=True)],
    ]
    axes.errorbar(
        speedups, places, xerr=errors, fmt="none", ecolor="black", elinewidth=0.8, capsize=2
    )
    axes.set_yticks(places, [_short(result.name) for result in ordered], fontsize=8)
    for place, result in zip(places, ordered, strict=True):
        end = max(result.interval.high, 1.0)
        axes.annotate(
            f"{report.digits(result.speedup)}x   {_times(result)}",
            (end, place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )
    axes.axvline(1.0, color="black", linewidth=0.8)
    if len(ordered) > 1:
        mean = report.mean_speedup(ordered)
        label = f"geometric mean {report.digits(mean)}x"
        axes.axvline(mean, color=MEAN, linestyle="--", linewidth=1.0, zorder=0, label=label)
        axes.legend(loc="lower right", fontsize=8)
    _scale(axes, ordered)
    return made


def _scale(axes: Axes, results: Sequence[Result]) -> None:
    """Limits with space for the labels, ticks, and what the axis is."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low = min(1.0, *(result.interval.low for result in results))
    high = max(1.0, *(result.interval.high for result in results))
    first = results[0]
    logarithmic = high / low >= LOGARITHMIC
    if logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.1, high * (high / low) ** 0.28)
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.set_xlim(low - 0.05 * (high - low) - 0.02, high + 0.45 * (high - low) + 0.1)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    what = report.explained(first.interval, len(first.fused.times))
    axes.set_xlabel(what + " (logarithmic scale)" * logarithmic, fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    axes.set_title(f"Speedup by fusion: {processor()}, {SETTINGS.threads} threads", fontsize=10)
    axes.set_ylim(-0.6, len(results) - 0.4)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _times(result: Result) -> str:
    """The medians before and after, in one unit where one suits both."""
    before, after = spread(result.unfused.times).median, spread(result.fused.times).median
    (unit, factor), (after_unit, after_factor) = time_unit(before), time_unit(after)
    shown = "" if unit == after_unit else f" {unit}"
    return f"{digits(before * factor)}{shown} → {digits(after * after_factor)} {after_unit}"


def _short(name: str) -> str:
    """A name without its middle, if it is too long for the margin."""
    if len(name) <= LONGEST:
        return name
    kept = LONGEST // 2
    return f"{name[:kept]}…{name[-kept + 1 :]}"


def save(results: Sequence[Result], path: Path) -> None:
    """Write `figure` in the format that the path's suffix names; the folder must be there."""
    figure(results).savefig(path, dpi=150)
