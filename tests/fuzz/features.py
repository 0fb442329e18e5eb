"""What programs have in them, so that a campaign can tell what it has tried."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.fuzz.cxx import WORDS
from tests.fuzz.program import Call, Host, Program

#: In the source of the workunits.
_IN_SOURCE = {
    "i // 2": r"\[[^\]]*i // 2",
    "i % 4": r"\[[^\]]*i % 4",
    "x[i // m, i % m]": r"i // s0(, i %|\n)",
    "n - 1 - i": r"\[\d+ - [ij]",
    "x[i + k], k a scalar": r"\[[^\]]*i \+ s\d",
    "i + d, d of few values": r"\[[^\]]*i \+ d\d",
    "2 * i + 1": r"\[[^\]]*2 \* i",
    "(3 * i) % n": r"\[[^\]]*\(3 \* i\)",
    "neighbour around the end": r"\(?[ij] \+ \d+\) % \d|if [ij] (<|>=) \d+ else [ij]",
    "neighbour that stays inside": r"if [ij] (<|>=) \d+ else \d",
    "neighbour that a branch corrects": r"if (p|k\d+) [<>]",
    "x[idx[i]]": r"\[[^\]]*[xyzwv]\[",
    "x[idx[i] & 7]": r"\[\(+[xyzwv]\[[^\]]*\] [&%]",
    "x[j, i]": r"\[j(, |\]\[)i",
    "result as index": r"\[[^\]]*\(r\d",
    "result as loop bound": r"range\(r\d",
    "nested loops": r"range.*\n\s+for ",
    "while": r"while ",
    "break": r"break",
    "continue": r"continue",
    "early return": r"return",
    "guard": r"if ",
    "condition on a quotient": r"(//|%) (-?\d|s\d+) [<>=!]+ -?\d",
    "else": r"else:",
    "atomic": r"atomic_add",
    "update (+=)": r"\] [-+*]= ",
    "update of integers (^=, >>=)": r"\] ([&|^%]|<<|>>)= ",
    "conversion to a word": r"pk\.u?int\d+\(",
    "index of a word's type": r"\[(\w, )?\(?pk\.u?int",
    "local of a word's type": r"(t|total): pk\.u?int",
    "local without a type": r"\n +\w+ = ",
}
#: In the texts of view arguments.
_IN_VIEWS = {
    "slice": r"\[\d*:",
    "negative stride": r"::-",
    "stride 2": r"::-?2",
    "transpose": r"\.T",
    "row or column": r"\[\d+\]$|, \d+\]$",
    "broadcast": r"broadcast_to",
    "as_strided": r"as_strided",
    "memory as another type": r"\.view\(",
}
#: In the texts of the host's statements.
_IN_HOST = {
    "host writes an element": r"^\w\[[\d, ]+\] =",
    "host fills": r"fill",
    "host writes through np.asarray": r"asarray.*\] =",
    "host writes a slice": r"^\w\[.*:.*\] = [-\d]",
    "host copies": r"= [A-Z]$",
    "host reads an element": r"read\([A-Z]\[",
    "host reads through np.asarray": r"read\(np",
    "host reads a pending result": r"read\(result",
    "resize": r"resize",
}
_DTYPES = ("float32", "int32", "int64", "bool", "complex64", "complex128", *WORDS)
STORE_THAT_WRAPS = "store of a number that wraps"
#: What the plans of programs have.
PLANNED = (
    "fused loop", "sweep", "sweep of 3 or more", "sweep with lags", "sweep around the ends",
    "cut group",
    "rolling view", "rolling view that is changed",
    "scan beside maps", "plan of larger sizes",
    "loops interchanged", "loops blocked", "coarsened loop", "short axes as loops",
    "short axes as loops, with a sum", "outermost axis as a loop", "several sums in a loop",
    "flattened call over rows", "flattened call beside MDRange",
    "loops along columns", "sums beside loops along columns",
    "loops along columns under conditions",
    "memory asked for ahead",
    "sums in groups", "map and sum in an inner loop",
    "guarded or split loop", "guarded loop of several axes", "guarded loop with a sum",
    "split loop", "blocks without conditions", "edge among rows", "edges of several rows",
    "tallies in copies", "element loaded early",
    "recomputed", "recomputed, and not stored", "recomputed, and stored",
    "several calls recomputed", "recomputed beside others",
    "steady loop", "graph of a GPU", "trial of a cut", "calls rolled", "calls in bands",
)  # fmt: skip
NAMES = (
    *_IN_SOURCE, *_IN_VIEWS, *_IN_HOST, *_DTYPES, "reduce", "scan", "MDRange", "MDRange sub-box",
    "no iteration", "one iteration", "shifted range", "result as scalar", "result as range end",
    "temporary", "one view, two names", "same workunit again", "bases exchanged",
    "nested fusing block", "nested unfused block", "stencil chain", "stencil chain of 3 or more",
    "sum in a word's type", "scan in a word's type", "scalar of a word's type", "word temporary",
    "atomic on a word", STORE_THAT_WRAPS,
    *PLANNED,
)  # fmt: skip


def features(program: Program) -> set[str]:
    """The names, out of `NAMES`, of what a program has."""
    source = program.source()
    views = [text for call in program.calls for _, text in call.views]
    host = [step.text for step in program.steps if isinstance(step, Host)]
    found = {name for name, pattern in _IN_SOURCE.items() if re.search(pattern, source)}
    for patterns, texts in ((_IN_VIEWS, views), (_IN_HOST, host)):
        for name, pattern in patterns.items():
            if any(re.search(pattern, text) for text in texts):
                found.add(name)
    found |= {base.dtype for base in program.bases[:-1]} & set(_DTYPES)
    if any(base.temporary for base in program.bases):
        found.add("temporary")
    words = {base.name for base in program.bases if base.dtype in WORDS}
    if any(base.temporary for base in program.bases if base.name in words):
        found.add("word temporary")
    for call in program.calls:
        found.update(_of_call(call))
        if re.search(r"int\d", call.accumulator):
            found.add(f"{'sum' if call.pattern == 'reduce' else 'scan'} in a word's type")
        if any(text.startswith("np.") for _, text in call.scalars):
            found.add("scalar of a word's type")
        targets = re.findall(r"atomic_\w+\((\w)", call.source(""))
        if any(dict(call.views)[name][0] in words for name in targets):
            found.add("atomic on a word")
    found.update(_of_sequence(program))
    return found


def _of_call(call: Call) -> Iterator[str]:
    sizes = [end - begin for begin, end in zip(call.begin, call.end, strict=True)]
    texts = [text for _, text in call.views]
    if call.pattern != "for":
        yield call.pattern
    if len(sizes) > 1:
        yield "MDRange"
        if any(call.begin):
            yield "MDRange sub-box"
    if min(sizes) == 0:
        yield "no iteration"
    elif max(sizes) == 1:
        yield "one iteration"
    if any(call.begin):
        yield "shifted range"
    if any(text.startswith("result") for _, text in call.scalars):
        yield "result as scalar"
    if call.limit:
        yield "result as range end"
    if len(set(texts)) < len(texts):
        yield "one view, two names"
    if call.mode:
        yield f"nested {call.mode} block"


def _of_sequence(program: Program) -> Iterator[str]:
    units = program.units
    if len(set(units)) < len(units):
        yield "same workunit again"
    bound: dict[int, set[str]] = {}
    for unit, call in zip(units, program.calls, strict=True):
        bound.setdefault(unit, set()).add(" ".join(text for _, text in call.views))
    if any(len(texts) > 1 for texts in bound.values()):
        yield "bases exchanged"
    longest = run = 0
    written: set[str] = set()
    for step in program.steps:
        if isinstance(step, Host) or step.pattern != "for":
            run, written = 0, set()
            continue
        names = dict(step.views)
        text = step.source("")
        shifted = {names[n][0] for n in re.findall(r"(\w)\[[^\]]*[ij] [-+] \d", text)}
        run = run + 1 if shifted & written else 0
        written = {names[n][0] for n in re.findall(r"(\w)\[[^=]*\] [-+*]?= ", text) if n in names}
        longest = max(longest, run)
    if longest >= 1:
        yield "stencil chain"
    if longest >= 2:
        yield "stencil chain of 3 or more"
