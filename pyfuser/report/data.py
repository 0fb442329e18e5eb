"""The report as a tree of dictionaries: what `--json` writes, and the HTML page shows.

docs/explain.md documents the keys.
"""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Iterable, Iterator, Sequence
from tokenize import TokenError
from typing import Any, NamedTuple

from pyfuser.report import text, words
from pyfuser.report.model import CallReport, Cost, GroupReport, KernelReport, Report
from pyfuser.support.places import short_path

FORMAT = 1
"""Grows when a key changes its meaning or goes."""

Tree = dict[str, Any]


class _Launch(NamedTuple):
    """A launch, with its flush and the number of its code."""

    kernel: KernelReport
    run: int
    code: int


def tree(report: Report) -> Tree:
    """The whole, of numbers, texts, lists and dictionaries alone."""
    launches = list(_launches(report))
    codes: dict[int, list[KernelReport]] = {}
    for launch in launches:
        codes.setdefault(launch.code, []).append(launch.kernel)
    return {
        "format": FORMAT,
        "headline": words.headline(report),
        "summary": _summary(report),
        "launched": [
            {"file": a.file, "line": a.line, "why": a.why, "times": a.times, "text": words.asked(a)}
            for a in report.asked
        ],
        "earlier": words.earlier(report),
        "calls": _calls(launches),
        "kernels": [
            {"number": n, "run": each.run, "code": each.code, **_cost(each.kernel.cost)}
            for n, each in enumerate(launches, 1)
        ],
        "codes": [_code(same) for same in codes.values()],
        "not_fused": list(_rejections(report)),
        "not_recorded": list(report.unrecorded),
        "ran_unfused": list(report.apart),
    }


def _launches(report: Report) -> Iterator[_Launch]:
    """The launches in order; equal ones have one code."""
    numbers: dict[object, int] = {}
    run = seen = 0
    for kernel in report.kernels:
        while run < len(report.ends) - 1 and seen >= report.ends[run]:
            run += 1
        seen += len(kernel.loops)
        yield _Launch(kernel, run, numbers.setdefault(text.key(kernel), len(numbers)))


def _summary(report: Report) -> Tree:
    return {
        "calls": report.recorded,
        "kernels": report.launches,
        "runs": report.covered,
        "bytes_moved": report.bytes_moved,
        "bytes_unfused": report.bytes_unfused,
        "bytes_avoided": report.bytes_avoided,
        "bytes_at_once": report.bytes_at_once,
        "bytes_at_once_unfused": report.bytes_at_once_unfused,
        "waiting": report.waiting,
        "seconds": report.seconds,
        "copied_to_device": report.copied_to_device,
        "copied_to_host": report.copied_to_host,
    }


def _calls(launches: Sequence[_Launch]) -> list[Tree]:
    """The calls in the order they were made, each with its kernel's number."""
    found = [
        (each.run, call.position, number, call)
        for number, each in enumerate(launches, 1)
        for call in each.kernel.calls
    ]
    return [
        {
            "name": call.name,
            "file": call.file,
            "line": call.line,
            "text": linecache.getline(call.file, call.line).strip(),
            "run": run,
            "kernel": number,
        }
        for run, _, number, call in sorted(found, key=lambda item: item[:3])
    ]


def _cost(cost: Cost) -> Tree:
    return {
        "bytes_moved": cost.bytes_moved,
        "bytes_unfused": cost.bytes_unfused,
        "operations": cost.operations,
        "modelled": cost.modelled,
        "modelled_unfused": cost.modelled_unfused,
        "modelled_fits": cost.fits,
        "measured": cost.warm,
        "first": cost.measured if cost.launches == 1 else None,
        "launches": cost.launches,
    }


def _code(same: Sequence[KernelReport]) -> Tree:
    """What equal launches have in common."""
    kernel = same[0]
    costs = [(0, line) for line in words.costs([each.cost for each in same])]
    return {
        "title": words.title(kernel),
        "times": len(same),
        "facts": [{"depth": depth, "text": line} for depth, line in (*words.facts(kernel), *costs)],
        "sweep": kernel.sweep is not None,
        "loops": [_loop(loop) for loop in kernel.loops],
        "generated": kernel.generated,
    }


def _loop(loop: GroupReport) -> Tree:
    vectors = loop.vectors
    return {
        "calls": [{"name": c.name, "file": c.file, "line": c.line} for c in loop.calls],
        "workunits": list(_workunits(loop.calls)),
        "source": loop.source,
        "contracted": list(loop.contracted),
        "bytes_avoided": loop.bytes_avoided,
        "kept": [
            {"name": k.name, "bytes": k.size, "reader": str(k.reader) if k.reader else None}
            for k in loop.kept
        ],
        "removed_stores": loop.removed_stores,
        "removed_loads": loop.removed_loads,
        "vectorised": vectors.answer if vectors else None,
        "vectorised_why": vectors.why if vectors else "",
    }


def _workunits(calls: Iterable[CallReport]) -> Iterator[Tree]:
    """The source of the calls' workunits, each once."""
    for place in dict.fromkeys(call.workunit for call in calls):
        if place is None:
            continue
        lines = linecache.getlines(place.file)[place.line - 1 :]
        try:
            lines = inspect.getblock(lines) if lines else []
        except (TokenError, SyntaxError, IndentationError):
            lines = lines[:1]
        yield {
            "name": place.function,
            "file": place.file,
            "short": short_path(place.file),
            "line": place.line,
            "source": inspect.cleandoc("\n" + "".join(lines)) if lines else "",
        }


def _rejections(report: Report) -> Iterator[Tree]:
    for same in words.alike(report.rejections):
        r = same[0]
        yield {
            "pair": words.pair(r, len(same)),
            "first": str(r.first),
            "second": str(r.second),
            "times": len(same),
            "reason": r.reason,
            "message": r.message,
            "same_sweep": r.same_sweep,
            "sweep": r.sweep,
            "remedy": r.remedy,
            "file": r.location.file if r.location else None,
            "line": r.location.line if r.location else None,
        }
