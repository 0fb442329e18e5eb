"""The report as text, wrapped to the terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyfuser.report import words
from pyfuser.report.folding import folds
from pyfuser.report.model import KernelReport, Report

PLAIN = 80
"""Columns of what is no terminal."""

NARROWEST = 40

_INDENT = 4


class _Layout(NamedTuple):
    """Columns of a line, and whether the kernels' source is shown."""

    columns: int
    source: bool


def width() -> int:
    """How many columns there are."""
    stream = sys.stdout
    try:
        terminal = stream is not None and stream.isatty()
    except ValueError:  # it is closed
        terminal = False
    return max(shutil.get_terminal_size((PLAIN, 24)).columns, NARROWEST) if terminal else PLAIN


def of(report: Report, columns: int = PLAIN) -> str:
    """The whole text."""
    first, *gains = words.headline(report)
    lines = _wrapped(first, columns)
    for fact in (*gains, *map(words.asked, report.asked), words.earlier(report)):
        lines += _wrapped(fact, columns, _INDENT)
    rows = [[kernel] for kernel in report.kernels]
    lines += _kernels(rows, 1, 0, _Layout(columns, report.show_source))
    for title, items in words.apart(report):
        lines += ["", title]
        for head, *others in items:
            lines += _wrapped(head, columns, 2)
            for other in others:
                lines += _wrapped(other, columns, 2 + _INDENT)
    return "\n".join(lines)


def _kernels(
    rows: Sequence[Sequence[KernelReport]], first: int, depth: int, layout: _Layout
) -> Iterator[str]:
    """The kernels, of which each row has equal ones; rows that repeat are shown once.

    first: the number of the first row's kernel. depth: in how many repeats the rows are.
    """
    for start, length, times in folds([key(row[0]) for row in rows]):
        last = start + length * times
        merged = [
            [kernel for row in rows[place:last:length] for kernel in row]
            for place in range(start, start + length)
        ]
        number = first + start
        yield ""
        if length > 1:
            title = f"kernels {number} to {first + last - 1}: these {length} in turn, {times} times"
            yield " " * 2 * depth + title
            yield from _kernels(merged, number, depth + 1, layout)
        else:
            name = words.numbers("kernel", number, number + times - 1)
            yield from _kernel(merged[0], name, 2 * depth, layout)


def key(kernel: KernelReport) -> object:
    """What equal kernels have in common: all that is printed of them, their costs apart."""
    sources = tuple(loop.source for loop in kernel.loops)
    return words.title(kernel), tuple(words.facts(kernel)), sources


def _kernel(same: Sequence[KernelReport], name: str, indent: int, layout: _Layout) -> Iterator[str]:
    kernel = same[0]
    yield from _wrapped(f"{name}: {words.title(kernel)}", layout.columns, indent)
    inside = indent + _INDENT
    for level, fact in words.facts(kernel):
        yield from _wrapped(fact, layout.columns, inside + _INDENT * level)
    for fact in words.costs([each.cost for each in same]):
        yield from _wrapped(fact, layout.columns, inside)
    for loop in kernel.loops if layout.source else ():
        yield from textwrap.indent(loop.source.rstrip(), " " * inside).split("\n")


def _wrapped(text: str, columns: int, indent: int = 0) -> list[str]:
    """The text in lines, those after the first indented more; names and numbers stay whole."""
    if not text:
        return []
    together = text.replace(" (", "\0(").replace(" x", "\0x")
    lines = textwrap.wrap(
        together,
        columns,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in lines]
