"""Declarations without their annotations, so that the type of the first value counts.

That is made the declared type where that matters: a double's is `1.0 * e`, a word's `pk.uint8(e)`.
Other integers, which are small, may get a wider type. Some names start in both branches of an `if`.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace

from tests.fuzz.program import Call, Program, Statement

_SHARE = 4  # one program in so many has such locals
_DECLARED = re.compile(r"(\w+): ([\w.]+) = (.*)")


def inferred(program: Program) -> Program:
    """The program, in which some declarations have no annotation, if its seed says so."""
    if random.Random(f"inferred {program.seed}").randrange(_SHARE):
        return program
    steps = [
        _call(step, program.seed) if isinstance(step, Call) else step for step in program.steps
    ]
    return replace(program, steps=tuple(steps))


def _call(call: Call, seed: int) -> Call:
    rng = random.Random(f"{seed} {call.source('')}")  # calls of one workunit still share it
    return replace(call, body=tuple(_statement(rng, statement) for statement in call.body))


def _statement(rng: random.Random, statement: Statement) -> Statement:
    bodies = tuple(tuple(_statement(rng, s) for s in body) for body in statement.bodies)
    found = _DECLARED.fullmatch(statement.template)
    if found is None or rng.random() < 0.4:
        return replace(statement, bodies=bodies)
    name, kind, value = found.groups()
    if kind == "float":
        value = f"1.0 * {value}"  # `float(e)` would be of 32 bits
    elif kind != "int" or rng.random() < 0.3:
        value = f"{'pk.' * (kind == 'bool')}{kind}({value})"
    plain = Statement(f"{name} = {value}", statement.parts)
    if rng.random() < 0.25:
        return Statement(f"if i % {rng.randint(1, 3)} == 0:\nelse:", (), ((plain,), (plain,)))
    return plain
