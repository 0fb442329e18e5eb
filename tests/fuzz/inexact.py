"""The inexact tier: compiled programs on numbers with full mantissas, fused against unfused.

The oracle computes in its own types, so the other tiers keep to numbers that every type holds
exactly, and to sums that are the same in any order. Here nothing is rounded away, and what is
promised is compared: fused, a program has the bits that it has unfused. Half of the programs
compute in double precision what goes through views of single precision, and most of them store
functions of what they stored before.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tests.fuzz import oracle, steady
from tests.fuzz.compiled import Place, run_compiled, run_forced
from tests.fuzz.harness import Mismatch, Outcome, bases_of, lowered, run_unfused
from tests.fuzz.oracle import Rejected, State
from tests.fuzz.program import Base, Call, Expr, Program, Statement, Step

_STORE = re.compile(r"\w\[[^=]*\] = \{\}")
_FUNCTIONS = (
    *("{}", "math.sin({})", "math.tanh({})", "math.exp({})", "math.log(2.5 + {})"),
    *("({}) / 1.7", "({}) / -1e-3"),
)
_PLAIN = 3  # ten programs in so many times ten have none of these functions
_FLOAT_AS_INTEGER = re.compile(r"\bint\((math|acc)")
_WHOLE = re.compile(r"math\.fmod\(pk\.floor\(\{\}\), 64\.0\)")


def check_inexact(program: Program, place: Place | None = None) -> Outcome:
    """Compare the compiled program with itself unfused: needs a C++ compiler.

    Raises Rejected for programs that race, and for float values that become indices or are added
    by atomic updates; Mismatch where bits differ (but those of one NaN and another).
    """
    program, length = steady.chosen(program)
    expected = oracle.run(program)
    program = replace(
        program,
        inexact=True,
        bases=tuple(map(_shorter, program.bases) if program.seed % 2 else program.bases),
        steps=tuple(_step(program, step, n % length) for n, step in enumerate(program.steps)),
    )
    workunits = lowered(program, expected[1])
    try:
        run_unfused(program, workunits, 0)  # raises Rejected for races
    except (ArithmeticError, ValueError, IndexError) as error:
        raise Rejected(f"{type(error).__name__}: {error}") from None
    apart = replace(program, steps=tuple(map(_alone, program.steps)))
    alone = run_compiled(apart, fused=False, place=place)
    # Tiles decide the bits of scans.
    fused, outcome = run_forced(program, small_tiles=False, place=place)
    _compare(program, alone, fused)
    return outcome


def _shorter(base: Base) -> Base:
    short = base.dtype == "float64" and (base.temporary or ord(base.name) % 2)
    return replace(base, dtype="float32") if short else base


def _step(program: Program, step: Step, number: int) -> Step:
    if not isinstance(step, Call):
        return step
    text = step.source("")
    if "atomic" in text or _FLOAT_AS_INTEGER.search(text):
        raise Rejected("values in an order of their own, or as indices")
    dtypes = {base.name: base.dtype for base in program.bases}
    real = {
        name
        for name, text in step.views
        if all(dtypes[base].startswith("float") for base in bases_of(text))
    }
    function = random.Random(program.seed * 100 + number).choice(_FUNCTIONS)
    change = partial(_statement, real if program.seed // 10 % _PLAIN else set(), function)
    return replace(step, body=tuple(map(change, step.body)))


def _alone(step: Step) -> Step:
    return replace(step, mode="") if isinstance(step, Call) else step


def _statement(real: set[str], function: str, statement: Statement) -> Statement:
    """With full mantissas; `function` is that of what is stored to the views `real`."""
    parts = tuple(map(_expr, statement.parts))
    if _STORE.fullmatch(statement.template) and statement.template[0] in real:
        parts = ((function, *parts),)
    return replace(
        statement,
        template=_WHOLE.sub("({})", statement.template),
        parts=parts,
        bodies=tuple(
            tuple(_statement(real, function, inner) for inner in body) for body in statement.bodies
        ),
    )


def _expr(expr: Expr) -> Expr:
    return _WHOLE.sub("({})", expr[0]), *map(_expr, expr[1:])


def _compare(program: Program, alone: State, fused: State) -> None:
    """Raise Mismatch where a non-temporary array or a result differs."""
    pairs: list[tuple[str, Any, Any]] = [
        (base.name, alone[0][base.name], fused[0][base.name])
        for base in program.bases
        if not base.temporary
    ]
    pairs += [(f"result {n}", *pair) for n, pair in enumerate(zip(alone[1], fused[1], strict=True))]
    for name, left, right in pairs:
        if left is None and right is None:
            continue
        if not np.array_equal(np.asarray(left), np.asarray(right), equal_nan=True):
            raise Mismatch(f"inexact: {name} differs\nunfused {left!r}\nfused {right!r}")
