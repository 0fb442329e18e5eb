"""Programs as steady loops: their steps again and again, with other numbers, on the same memory.

What is made for a trace is used again when it comes back: plans, kernels, graphs of a GPU. As in
loops of people, each round has temporaries of its own, numbers of its own, and some loops exchange
two arrays from one round to the next.
"""

from __future__ import annotations

import contextlib
import random
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from string import ascii_uppercase

import pytest

from pyfuser.runtime import autotune, bands, duel
from pyfuser.runtime.program import Flush
from pyfuser.support.counters import COUNTERS, Counters
from tests.fuzz.program import Base, Host, Program, Step
from tests.vendors import tune

ROUNDS = 6

_STEADY = 3  # one program in so many times thirty is a loop
_TRIED = 2  # one loop in so many tries fused and cut in turns
_READ = 0.9  # of all loops read a number in each round
_NUMBERS = ("0.25", "0.5", "-0.5", "1.0", "-1.0", "1.5")
_FLOAT = re.compile(r"-?\d+\.\d+")
_RESULT = re.compile(r"result\[(\d+)\]")
_BASE = re.compile(r"(?<![.\w])[A-Z]\b")


def chosen(program: Program) -> tuple[Program, int]:
    """The program, as a loop if its seed says so, and how many steps a round of it has."""
    found = repeated(_wide(program), ROUNDS) if _is_loop(program.seed) else program
    rounds = 1 if found is program else ROUNDS
    return found, max(len(found.steps) // rounds, 1)


def _wide(program: Program) -> Program:
    """The program on doubles: in a loop halves of halves outgrow single precision.

    Not if it takes memory as another type.
    """
    if any(".view(" in text for call in program.calls for _, text in call.views):
        return program
    kinds = {"float32": "float64"}
    bases = (replace(base, dtype=kinds.get(base.dtype, base.dtype)) for base in program.bases)
    return replace(program, bases=tuple(bases))


def _is_loop(seed: int) -> bool:
    return seed // 30 % _STEADY == 0


@contextlib.contextmanager
def forced_for(seed: int) -> Iterator[None]:
    """Inside, a loop of a few rounds is treated as one of many thousands.

    Launches on a GPU are captured when they come for the first time. Some loops try fused and cut
    in turns: which of them stays is the clock's choice. Half of the others run in bands where they
    can, which the extension does when a trace comes back.
    """
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        tune(patch, graph_launches=0)
        if _is_loop(seed) and seed // 90 % _TRIED == 0:
            settings = replace(autotune.SETTINGS, arbitrate=True, directory=Path(folder))
            patch.setattr(autotune, "SETTINGS", settings)
            tune(patch, long=0.0, soon=0.0, trial_kernel=0.0)
            for module, name, value in (
                (autotune, "DOUBT", 100.0),
                (autotune, "STEADY", 1),
                (duel, "FEWEST", 2),
                (duel, "ROUNDS", 2),
            ):
                patch.setattr(module, name, value)
        elif _is_loop(seed) and seed % 2:
            settings = replace(bands.SETTINGS, arbitrate=True)
            patch.setattr(bands, "SETTINGS", settings)
            patch.setattr(bands, "NEIGHBOURS", 2)
            tune(patch, band_calls=2, band_kinds=0, band_share=0.0, band_caches=0.0, band_work=0)
        yield


def counted(before: Counters, flushes: Sequence[Flush]) -> frozenset[str]:
    """What happened since, in these flushes, out of `features.PLANNED`."""
    found = set()
    plans = defaultdict(list)
    for flush in flushes:
        plans[flush.program.trace].append(flush.program.plan)
    if any(len(ran) == ROUNDS for ran in plans.values()):
        found.add("steady loop")
    if any(len(set(ran)) > 1 for ran in plans.values()):
        found.add("trial of a cut")
    if any(flush.program.cuts for flush in flushes):
        found.add("calls in bands")
    if COUNTERS.graph_launches > before.graph_launches:
        found.add("graph of a GPU")
    return frozenset(found)


def repeated(program: Program, rounds: int) -> Program:
    """The program's steps so many times.

    A program is left as it is if its arrays get other lengths, or letters for temporaries run out.
    """
    temporary = [base for base in program.bases if base.temporary]
    letters = sorted({*ascii_uppercase} - {base.name for base in program.bases})
    resizes = any(isinstance(step, Host) and "resize" in step.text for step in program.steps)
    if resizes or len(letters) < len(temporary) * (rounds - 1):
        return program
    rng = random.Random(program.seed)
    pair = _pair(program, rng)
    if rng.random() < _READ:  # so that a round is a flush, or some
        kept = rng.choice([base.name for base in program.bases if not base.temporary])
        read = Host(f"read(np.asarray({kept}).flat[0])")
        program = replace(program, steps=(*program.steps, read))
    bases, steps = list(program.bases), list(program.steps)
    for number in range(1, rounds):
        fresh = [replace(base, name=letters.pop()) for base in temporary]
        bases += fresh
        names = {old.name: new.name for old, new in zip(temporary, fresh, strict=True)}
        if number % 2:
            names |= dict(zip(pair, reversed(pair), strict=True))
        first = number * len(program.steps)
        steps += [_again(step, first, names, rng) for step in program.steps]
    return replace(program, bases=tuple(bases), steps=tuple(steps))


def _pair(program: Program, rng: random.Random) -> tuple[str, ...]:
    """Two bases that are exchanged in every other round, or none."""
    kept = [base for base in program.bases if not base.temporary]
    pairs = [(one.name, other.name) for one in kept for other in kept if _alike(one, other)]
    return rng.choice(pairs) if pairs and rng.random() < 0.5 else ()


def _alike(one: Base, other: Base) -> bool:
    return one.name < other.name and (one.shape, one.dtype) == (other.shape, other.dtype)


def _again(step: Step, first: int, names: dict[str, str], rng: random.Random) -> Step:
    """A step of the round whose first step has the number `first`."""

    def text(given: str) -> str:
        given = _RESULT.sub(lambda match: f"result[{int(match[1]) + first}]", given)
        return _BASE.sub(lambda match: names.get(match[0], match[0]), given)

    if isinstance(step, Host):
        return Host(text(step.text))
    scalars = [
        (name, rng.choice(_NUMBERS) if _FLOAT.fullmatch(value) else text(value))
        for name, value in step.scalars
    ]
    views = [(name, text(value)) for name, value in step.views]
    return replace(step, views=tuple(views), scalars=tuple(scalars), limit=text(step.limit))
