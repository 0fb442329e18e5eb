"""The sentences of the report, one function a kind of fact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

from pyfuser.report.folding import folds
from pyfuser.report.model import (
    Asked,
    CallReport,
    Cost,
    GroupReport,
    Kept,
    KernelReport,
    RejectionReport,
    Report,
    Vectors,
)
from pyfuser.support.places import short_path
from pyfuser.support.units import count, seconds, size
from pyfuser.tuning.thresholds import NOW

NOTHING = (
    "nothing has been recorded yet. PyFuser records, and then runs fused:",
    "calls of workunits that @pyfuser.fuse decorates",
    "every call inside `with pyfuser.fusing():`",
    "every call of a program that `pyfuser run script.py` starts",
    "operations of `pyfuser.numpy` on large arrays, once they have come often",
)

CHECKED = "nothing was recorded: with PYFUSER_CHECK every call runs by itself, unfused"

UNFUSED = (
    "calls ran one by one, unfused: numbers among their arguments differ each time, and each plan, "
    "or its kernels, would take longer than they do; or they are tiny, and to record them was "
    "measured to take longer"
)

Fact = tuple[int, str]
"""How deep a sentence is indented, and the sentence."""


def headline(report: Report) -> list[str]:
    """What was gained: the first is how many calls ran as how many kernels."""
    if not report.recorded:
        if report.checked:
            return [CHECKED]
        if report.apart:
            return [UNFUSED]
        return ["no call was recorded"] if report.unrecorded else [*NOTHING]
    lines = [f"{count(report.recorded, 'call')} ran as {count(report.launches, 'kernel')}"]
    moved, unfused, avoided = report.bytes_moved, report.bytes_unfused, report.bytes_avoided
    if unfused > moved:
        less = f": {unfused / moved:.2g} times less" if unfused >= 1.1 * moved > 0 else ""
        lines.append(f"memory traffic about {size(moved)}, unfused {size(unfused)}{less}")
    if avoided:
        arrays = sum(len(group.contracted) for group in report.groups)
        lines.append(f"{count(arrays, 'array')} never stored: {size(avoided)} less memory")
    if report.banded:
        lines.append(
            f"{count(report.banded, 'call')} ran unfused, but band by band: all of them for a part "
            "of an axis that they share, then for the next one"
        )
    if report.waiting:
        again = f"{count(report.waiting, 'call')} run{'s' * (report.waiting == 1)} again"
        lines.append(f"{again} if one is read before the next step overwrites it")
    now, before = report.bytes_at_once, report.bytes_at_once_unfused
    if (
        now not in (0, before) and max(now, before) >= NOW.running.told_bytes
    ):  # of none, `avoided` tells
        lines.append(f"new arrays take {size(now)} at once, unfused {size(before)}")
    if report.seconds is not None:
        lines.append(f"measured {seconds(report.seconds)} together, first launches left out")
    copies = (report.copied_to_device, "to the GPU"), (report.copied_to_host, "to the host")
    copied = [f"{size(number)} {where}" for number, where in copies if number]
    return [*lines, *([f"copied {' and '.join(copied)}"] if copied else [])]


def asked(place: Asked) -> str:
    """Where the program waited, and why."""
    often = f" {place.times} times" if place.times > 1 else ""
    where = f"at {short_path(place.file)}:{place.line}: " if place.line else "at "
    return f"launched{often} {where}{place.why}"


def earlier(report: Report) -> str:
    """How much the report leaves out; empty if nothing."""
    if not (report.earlier and report.recorded):
        return ""
    every = report.covered + report.earlier
    return f"{count(report.earlier, 'run')} before: see pyfuser.explain(flushes={every})"


# --------------------------------------------------------------------------- kernels


def title(kernel: KernelReport) -> str:
    """What a kernel consists of."""
    sweep = kernel.sweep
    if sweep is None:
        return calls(kernel.calls)
    apart = "side by side"
    if sweep.scan:
        apart = f"over tiles of {count(sweep.wave, 'iteration')}, as the scan"
    elif any(sweep.lags):
        apart = f"up to {count(max(sweep.lags), 'step')} apart" + ", around the ends" * sweep.ring
    return f"a sweep of {len(kernel.loops)} loops (one pass over memory), {apart}"


def facts(kernel: KernelReport) -> list[Fact]:
    """What was done to a kernel."""
    if kernel.sweep is None:
        return [(0, line) for line in _group(kernel.loops[0])]
    found: list[Fact] = []
    texts = [(calls(loop.calls), *_group(loop)) for loop in kernel.loops]
    for start, length, times in folds(texts):
        if length > 1 and times > 1:
            last = start + length * times
            found.append((0, f"loops {start + 1} to {last}: these {length}, {times} times"))
        for place in range(start, start + length):
            end = start + times if length == 1 else place + 1
            first, *others = texts[place]
            found.append((0, f"{numbers('loop', place + 1, end)}: {first}"))
            found += ((1, line) for line in others)
    if kernel.sweep.windows:
        names = ", ".join(kernel.sweep.windows)
        found.append((0, f"only a few steps in memory at a time: {names}"))
    return found


def _group(group: GroupReport) -> Iterator[str]:
    """What was done to the calls of a loop."""
    yield from group.rewritten
    if group.contracted:
        memory = f" ({size(group.bytes_avoided)} less)" if group.bytes_avoided else ""
        yield f"no memory needed: {', '.join(dict.fromkeys(group.contracted))}{memory}"
    yield from kept(group.kept)
    for what, removed in (("stores", group.removed_stores), ("loads", group.removed_loads)):
        views = [_times(view, n) for view, n in removed.items() if view not in group.contracted]
        if views:
            yield f"{what} removed: {', '.join(views)}"
    yield from filter(None, (group.order, group.registers))
    if group.vectors is not None:
        yield f"vectorised: {vectors(group.vectors)}"


def kept(arrays: Sequence[Kept]) -> Iterator[str]:
    """Why arrays stayed in memory."""
    found: dict[CallReport | None, list[Kept]] = {}
    for array in arrays:
        found.setdefault(array.reader, []).append(array)
    for reader, alike in found.items():
        names = _and([_times(name, n) for name, n in Counter(a.name for a in alike).items()])
        what = f"kept in memory: {names} ({size(sum(array.size for array in alike))}), as"
        one = len(alike) == 1
        if reader is not None:
            yield f"{what} {reader} reads {'it' if one else 'them'} in another kernel"
        else:
            held = "a name still held it" if one else "names still held them"
            yield (
                f"{what} {held} when the kernel ran. Dropped before, as by a function that "
                f"returns, {'it' if one else 'they'} would need no memory"
            )


def vectors(found: Vectors) -> str:
    """Yes or no, and why."""
    answer = "up to the compiler" if found.answer == "unknown" else found.answer
    return f"{answer}, {found.why}{_at(found.location)}" if found.why else answer


def costs(of: Sequence[Cost]) -> Iterator[str]:
    """What equal kernels move and take, beside their calls one by one."""
    if any(cost.bytes_unfused > cost.bytes_moved for cost in of):
        moved = _range((cost.bytes_moved for cost in of), size)
        yield f"moves about {moved}, unfused {_range((c.bytes_unfused for c in of), size)}"
    if all(cost.fits and cost.modelled_unfused > cost.modelled for cost in of):
        modelled = _range((cost.modelled for cost in of), seconds)
        yield f"modelled {modelled}, unfused {_range((c.modelled_unfused for c in of), seconds)}"
    warm = _range((cost.warm for cost in of), seconds)
    first = _range((cost.measured for cost in of), seconds)
    if warm:
        yield f"measured {warm}"
    elif first:
        yield f"measured {first} at the first launch, start-up included"


def _range(values: Iterable[float | None], text: Callable[[float], str]) -> str:
    texts = [text(value) for value in sorted(value for value in values if value is not None)]
    if not texts:
        return ""
    return texts[0] + (f" to {texts[-1]}" if texts[0] != texts[-1] else "")


# --------------------------------------------------------------------------- calls


def calls(made: Sequence[CallReport]) -> str:
    """The calls, repeats folded, a file named where it changes: `a (x.py:1), b (:2) x3`."""
    texts: list[str] = []
    file = ""
    for call in made:
        where = f":{call.line}" if call.file == file else call.location
        file = call.file
        texts.append(f"{call.name} ({where})")
    return _folded(texts, made)


def _folded(texts: Sequence[str], keys: Sequence[Hashable]) -> str:
    parts = []
    for start, length, times in folds(keys):
        inside = texts[start : start + length]
        if length > 1 and times > 1:
            inner = _folded(inside, keys[start : start + length])
            parts.append(f"({inner}) x{times}")
        else:
            parts.append(inside[0] if times == 1 else f"{inside[0]} x{times}")
    return ", ".join(parts)


def apart(report: Report) -> Iterator[tuple[str, list[list[str]]]]:
    """The calls that do not share a loop, or were not recorded: titles, and lines of each item."""
    for same_sweep, heading in ((False, "not fused:"), (True, "in one sweep, not in one loop:")):
        found = alike(r for r in report.rejections if r.same_sweep == same_sweep)
        if found:
            yield heading, [list(_rejection(same[0], len(same))) for same in found]
    if report.unrecorded:
        yield "not recorded:", [[call] for call in report.unrecorded]
    if report.apart:
        yield f"{UNFUSED}:", [[call] for call in report.apart]


def alike(rejections: Iterable[RejectionReport]) -> list[list[RejectionReport]]:
    """Rejections that say the same, together."""
    found: dict[tuple[object, ...], list[RejectionReport]] = {}
    for r in rejections:
        found.setdefault((r.first, r.second, r.message), []).append(r)
    return list(found.values())


def _rejection(rejection: RejectionReport, times: int) -> Iterator[str]:
    yield f"{pair(rejection, times)}: {rejection.message}"
    if rejection.sweep:
        yield f"nor in one sweep over memory: {rejection.sweep}"
    if rejection.remedy:
        yield f"to fuse them: {rejection.remedy}"


def pair(rejection: RejectionReport, times: int) -> str:
    """The two calls of equal rejections."""
    often = f", {times} times" if times > 1 else ""
    first, second = rejection.first, rejection.second
    where = f":{second.line}" if second.file == first.file else second.location
    return f"{first} and {second.name} ({where}){often}"


# --------------------------------------------------------------------------- rejections

WHY = {
    "space": "they run over different ranges",
    "pattern": "a scan, or a reduction that does not only add, needs a loop of its own",
    "scalar": "the second needs the first one's result as a number",
    "order": "their sums are added up in different orders, which changes the last bits",
    "threads": "their teams have different sizes",
    "opaque": "one prints, and the order of what is printed is kept",
    "unknown-access": "an index cannot be analysed",
    "profit": "one loop for both would not be faster",
    "measured": "both ways are timed, and the faster one is kept",
    "cycle": "a call between them has to run after one and before the other",
    "limit": "the kernel would have too many calls or arguments",
}

REMEDIES = {
    "anti": "write to a second array in place of {written}, and swap the two afterwards",
    "output": "write to different arrays, or let one of the calls write all of these elements",
    "threads": "give both teams the same size",
    "opaque": "take the printf out, or into a workunit of its own",
    "unknown-access": "compute the index from the loop's index and numbers with + - *, if you can; "
    "for one that is loaded from an array nothing can be done",
}

DEPENDENCES = {
    "flow": "{second} reads elements of {view}{there} that other iterations of {first} write{here}",
    "anti": "{second} writes elements of {view}{there} that other iterations of {first} read{here}",
    "output": "different iterations of both write the same elements of {view}{here}{there}",
    "unknown-access": "it is not known which elements of {view} {first} {does}{here} and "
    "{second} {then}{there}",
}
"""here, there: where the first and the second call access it."""

_ARTICLES = {"flow": "a", "anti": "an", "output": "an"}


def dependence(reason: str, values: Mapping[str, str]) -> str:
    """The sentence for two accesses that collide."""
    text = DEPENDENCES[reason].format(**values)
    if reason == "unknown-access":
        return text
    return f"{text}: {_ARTICLES[reason]} {reason} dependence"


# --------------------------------------------------------------------------- pieces


def numbers(noun: str, first: int, last: int) -> str:
    """`kernel 1`, `kernels 1 to 3, each`."""
    return f"{noun} {first}" if first == last else f"{noun}s {first} to {last}, each"


def _times(view: str, number: int) -> str:
    return view if number == 1 else f"{view} ({number})"


def _and(names: Sequence[str]) -> str:
    *most, last = dict.fromkeys(names)
    return f"{', '.join(most)} and {last}" if most else last


def _at(location: object) -> str:
    file, line = getattr(location, "file", ""), getattr(location, "line", 0)
    return f" ({short_path(file)}:{line})" if file else ""
