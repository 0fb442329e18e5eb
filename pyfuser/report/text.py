"""The report as text, wrapped to the terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator

from pyfuser.report import words
from pyfuser.report.folding import folds
from pyfuser.report.model import KernelReport, Report

PLAIN = 80
"""Columns of what is no terminal."""

NARROWEST = 40

_INDENT = 4


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
    lines += _kernels(report, columns)
    for title, items in words.apart(report):
        lines += ["", title]
        for head, *others in items:
            lines += _wrapped(head, columns, 2)
            for other in others:
                lines += _wrapped(other, columns, 2 + _INDENT)
    return "\n".join(lines)


def _kernels(report: Report, columns: int) -> Iterator[str]:
    """The kernels, repeats of one or of several in turn folded."""
    kernels = report.kernels
    keys = [key(kernel) for kernel in kernels]
    for start, length, times in folds(keys):
        depth = 0
        last = start + length * times
        if length > 1 and times > 1:
            depth = 2
            yield ""
            yield f"kernels {start + 1} to {last}: these {length} in turn, {times} times"
        for place in range(start, start + length):
            yield ""
            same = kernels[place:last:length]
            end = last if length == 1 else place + 1
            yield from _kernel(
                same, words.numbers("kernel", place + 1, end), columns, depth, report
            )


def key(kernel: KernelReport) -> object:
    """What equal kernels have in common: all that is printed of them, their costs apart."""
    sources = tuple(loop.source for loop in kernel.loops)
    return words.title(kernel), tuple(words.facts(kernel)), sources


def _kernel(
    same: tuple[KernelReport, ...], name: str, columns: int, depth: int, report: Report
) -> Iterator[str]:
    kernel = same[0]
    yield from _wrapped(f"{name}: {words.title(kernel)}", columns, depth)
    inside = depth + _INDENT
    for level, fact in words.facts(kernel):
        yield from _wrapped(fact, columns, inside + _INDENT * level)
    for fact in words.costs([each.cost for each in same]):
        yield from _wrapped(fact, columns, inside)
    for loop in kernel.loops if report.show_source else ():
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
