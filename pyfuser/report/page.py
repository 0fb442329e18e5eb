"""The report as HTML, made of what `data.tree` gives: a page, or a part of a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import count, groupby

from pyfuser.report import data, style
from pyfuser.report.data import Tree
from pyfuser.report.folding import folds
from pyfuser.report.model import Report
from pyfuser.support.units import seconds

OPEN = 8
"""Kernels whose code is shown at first, at most."""

_NUMBERS = count(1)
"""Of the reports: a notebook shows several, and a link leads to its own report."""

_GOLDEN = 137.508
"""Degrees between the hues of two codes: neighbours differ, and none comes again soon."""


def page(report: Report) -> str:
    """A page of its own, which needs nothing else."""
    css, tree = style.PAGE + style.REPORT, data.tree(report)
    unfolded = report.show_source or len(tree["codes"]) <= OPEN
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>PyFuser: what was fused</title><style>{css}</style></head>\n"
        f"<body>{_report(tree, unfolded)}</body></html>\n"
    )


def fragment(report: Report) -> str:
    """What a notebook shows below a cell."""
    tree = data.tree(report)
    return f"<style>{style.REPORT}</style>{_report(tree, report.show_source)}"


def _report(tree: Tree, unfolded: bool) -> str:
    """unfolded: whether the kernels' source is shown at first."""
    tree = {**tree, "id": f"pyfuser-{next(_NUMBERS)}-code"}
    first, *gains = tree["headline"]
    lines = [*gains, *(asked["text"] for asked in tree["launched"]), tree["earlier"]]
    head = f"<h1>{escape(first)}</h1>" if tree["kernels"] else f"<p>{escape(first)}</p>"
    parts = [head, *(f"<p>{escape(line)}</p>" for line in lines if line)]
    if tree["kernels"]:
        parts += [_heading("Time line"), _legend(), *_runs(tree)]
        parts.append(_heading("Kernels"))
        parts += [_kernel(tree, n, unfolded) for n in range(len(tree["codes"]))]
    parts += _lists(tree)
    return f'<div class="pyfuser">{"".join(parts)}</div>'


def _heading(text: str) -> str:
    return f"<h2>{escape(text)}</h2>"


def _legend() -> str:
    return (
        '<p class="quiet">Upper rows: the calls in the order they were made. Lower rows: the '
        "kernels that ran them, as wide as their part of the run's time. Each colour stands for "
        "one kernel's code; click on it.</p>"
    )


# --------------------------------------------------------------------------- the time line


def _runs(tree: Tree) -> Iterator[str]:
    """A pair of rows for each flush; for those in a row that look alike, one."""
    runs = [
        list(kernels) for _, kernels in groupby(tree["kernels"], key=lambda kernel: kernel["run"])
    ]
    made = {run: list(calls) for run, calls in groupby(tree["calls"], key=lambda call: call["run"])}
    looks = [tuple(kernel["code"] for kernel in run) for run in runs]
    for start, length, times in folds(looks):
        last = start + length * times
        for place in range(start, start + length):
            numbers = range(place + 1, last + 1, length)
            label = f"{'run' if times == 1 else 'runs'} {_numbers(numbers)}"
            kernels = runs[place]
            yield (
                f'<div class="run"><span class="quiet">{label}</span>'
                f'<div class="row calls">{_made(made.get(kernels[0]["run"], []), tree)}</div>'
                f'<div class="row">{_ran(kernels, tree)}</div></div>'
            )


def _made(calls: Sequence[Tree], tree: Tree) -> str:
    codes = {kernel["number"]: kernel["code"] for kernel in tree["kernels"]}
    return "".join(
        _box(tree, codes[c["kernel"]], f"{c['name']}, line {c['line']}: {c['text']}") for c in calls
    )


def _ran(kernels: Sequence[Tree], tree: Tree) -> str:
    times = [kernel["measured"] or kernel["first"] for kernel in kernels]
    timed = all(times)
    boxes = []
    for kernel, time in zip(kernels, times, strict=True):
        share = max(time / sum(times), 0.002) if timed else 1 / len(kernels)
        title = f"kernel {kernel['number']}" + (f": {seconds(time)}" if time else "")
        label = str(kernel["number"]) if share > 0.02 else ""
        boxes.append(_box(tree, kernel["code"], title, label, f";flex:{share:.4f} 1 0"))
    return "".join(boxes)


def _box(tree: Tree, code: int, title: str, label: str = "", more: str = "") -> str:
    return (
        f'<a href="#{tree["id"]}-{code}" title="{escape(title)}" '
        f'style="background:{_colour(code)}{more}">{label}</a>'
    )


def _colour(code: int) -> str:
    return f"hsl({(210 + code * _GOLDEN) % 360:.0f} 55% 45%)"


# --------------------------------------------------------------------------- kernels


def _kernel(tree: Tree, number: int, unfolded: bool) -> str:
    """What equal launches have in common, and their code beside the program's."""
    code = tree["codes"][number]
    launched = [kernel["number"] for kernel in tree["kernels"] if kernel["code"] == number]
    name = "kernel " if len(launched) == 1 else "kernels "
    # A fact may belong to the one before it, by its depth.
    facts = "".join(
        f'<div style="margin-left:{1.5 * fact["depth"]:.1f}em">{escape(fact["text"])}</div>'
        for fact in code["facts"]
    )
    return (
        f'<details class="kernel" id="{tree["id"]}-{number}" open '
        f'style="border-color:{_colour(number)}">'
        f"<summary>{name}{_numbers(launched)}: {escape(code['title'])}</summary>"
        f'<div class="facts">{facts}</div>{_sources(code, unfolded)}</details>'
    )


def _numbers(launched: Sequence[int]) -> str:
    if len(launched) > 2 and launched[-1] - launched[0] == len(launched) - 1:
        return f"{launched[0]} to {launched[-1]}"
    if len(launched) <= 4:
        return ", ".join(map(str, launched))
    return f"{launched[0]}, {launched[1]} ... {launched[-1]} ({len(launched)} times)"


def _sources(code: Tree, unfolded: bool) -> str:
    """The workunits beside the fused kernel, and the code that was compiled."""
    units: dict[tuple[str, int], Tree] = {}
    for loop in code["loops"]:
        units |= {(unit["file"], unit["line"]): unit for unit in loop["workunits"]}
    mine = "".join(
        f'<div class="quiet">{escape(unit["short"])}:{unit["line"]}</div>{_pre(unit["source"])}'
        for unit in units.values()
    )
    fused = "".join(_pre(loop["source"]) for loop in code["loops"])
    opened = " open" if unfolded else ""
    both = (
        f"<details{opened}><summary>source</summary>"
        f'<div class="both"><div>{_part("as written")}{mine}</div>'
        f"<div>{_part('as fused')}{fused}</div></div></details>"
    )
    made = f"<details><summary>generated code</summary>{_pre(code['generated'])}</details>"
    return both + (made if code["generated"] else "")


def _part(text: str) -> str:
    return f'<div class="quiet">{text}</div>'


def _pre(text: str) -> str:
    return f"<pre>{escape(text.strip())}</pre>"


# --------------------------------------------------------------------------- lists


def _lists(tree: Tree) -> Iterator[str]:
    """Calls that do not share a loop, or that were not recorded."""
    for same_sweep, title in ((False, "Not fused"), (True, "In one sweep, not in one loop")):
        found = [r for r in tree["not_fused"] if r["same_sweep"] == same_sweep]
        if found:
            yield _heading(title) + _list(map(_rejection, found))
    if tree["not_recorded"]:
        yield _heading("Not recorded") + _list(map(escape, tree["not_recorded"]))


def _rejection(r: Tree) -> str:
    text = f"<b>{escape(r['pair'])}</b>: {escape(r['message'])}"
    more = []
    if r["sweep"]:
        more.append(f"nor in one sweep over memory: {escape(r['sweep'])}")
    if r["remedy"]:
        more.append(f"to fuse them: {escape(r['remedy'])}")
    return text + "".join(f"<div>{line}</div>" for line in more)


def _list(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"
