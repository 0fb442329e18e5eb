"""Makes a failing program smaller while it goes on failing, and writes it down."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tests.fuzz.program import Call, Expr, Host, Program, Statement, Step

_SCRIPT = '''"""A program on which two runs disagree; found by `python -m tests.fuzz`.

{reason}
"""

from tests.fuzz.tiers import TIERS
from tests.fuzz.program import Base, Call, Host, Program, Statement

PROGRAM = {program!r}

if __name__ == "__main__":
    print(PROGRAM.listing())
    TIERS[{tier!r}](PROGRAM)
'''


def minimised(program: Program, fails: Callable[[Program], bool], budget: int = 2000) -> Program:
    """A smaller program that still fails; greedy, at most `budget` trials."""
    trials = 0
    progress = True
    while progress:
        progress = False
        for candidate in smaller(program):
            trials += 1
            if trials > budget:
                return program
            if fails(candidate):
                program, progress = candidate, True
                break
    return program


def smaller(program: Program) -> Iterator[Program]:
    """Programs with one thing less, the largest things first."""
    steps = program.steps
    for n in reversed(range(len(steps))):
        if not any(f"result[{n}]" in text for step in steps for text in _texts(step)):
            yield replace(program, steps=_without_step(steps, n))
    for n, step in enumerate(steps):
        if isinstance(step, Call):
            for changed in _smaller_calls(step):
                yield replace(program, steps=(*steps[:n], changed, *steps[n + 1 :]))
    for n, base in enumerate(program.bases):
        if base.temporary:
            bases = (*program.bases[:n], replace(base, temporary=False), *program.bases[n + 1 :])
            yield replace(program, bases=bases)


def _texts(step: Step) -> list[str]:
    """Where a step may name the result of another."""
    if isinstance(step, Host):
        return [step.text]
    return [step.limit, *(text for _, text in step.scalars)]


def _without_step(steps: tuple[Step, ...], gone: int) -> tuple[Step, ...]:
    """The steps without one; later results move up by one place."""

    def renumbered(text: str) -> str:
        return re.sub(
            r"result\[(\d+)\]", lambda m: f"result[{int(m[1]) - (int(m[1]) > gone)}]", text
        )

    kept: list[Step] = []
    for step in (*steps[:gone], *steps[gone + 1 :]):
        if isinstance(step, Host):
            kept.append(Host(renumbered(step.text)))
        else:
            scalars = tuple((name, renumbered(text)) for name, text in step.scalars)
            kept.append(replace(step, scalars=scalars, limit=renumbered(step.limit)))
    return tuple(kept)


def _smaller_calls(call: Call) -> Iterator[Call]:
    for body in _smaller_bodies(call.body):
        yield replace(call, body=body)
    yield from _smaller_spaces(call)
    if call.limit:
        yield replace(call, limit="")
    if call.mode:
        yield replace(call, mode="")
    names = set(re.findall(r"\w+", call.source("work")[:-1].partition(":\n")[2]))
    for kind in ("views", "scalars"):
        bound = getattr(call, kind)
        used = tuple([pair for pair in bound if pair[0] in names])
        if len(used) < len(bound):
            yield replace(call, **{kind: used})


def _smaller_bodies(body: tuple[Statement, ...]) -> Iterator[tuple[Statement, ...]]:
    for n, statement in enumerate(body):
        before, after = body[:n], body[n + 1 :]
        yield before + after
        for nested in statement.bodies:
            yield before + nested + after
        for k, nested in enumerate(statement.bodies):
            for less in _smaller_bodies(nested):
                bodies = (*statement.bodies[:k], less, *statement.bodies[k + 1 :])
                yield (*before, replace(statement, bodies=bodies), *after)
        for k, part in enumerate(statement.parts):
            for simpler in _smaller_expressions(part):
                parts = (*statement.parts[:k], simpler, *statement.parts[k + 1 :])
                yield (*before, replace(statement, parts=parts), *after)


def _smaller_expressions(expr: Expr) -> Iterator[Expr]:
    yield from expr[1:]
    for n, child in enumerate(expr[1:], 1):
        for simpler in _smaller_expressions(child):
            yield (*expr[:n], simpler, *expr[n + 1 :])


def _smaller_spaces(call: Call) -> Iterator[Call]:
    for axis, (begin, end) in enumerate(zip(call.begin, call.end, strict=True)):
        for shorter in {(begin + end + 1) // 2, end - 1}:
            if begin < shorter < end:
                yield replace(call, end=(*call.end[:axis], shorter, *call.end[axis + 1 :]))


def write_script(program: Program, tier: str, reason: str, directory: Path) -> Path:
    """Save the program as a script that fails when it is run from the repository's root."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"fuzz_{tier}_{program.seed}.py"
    path.write_text(_SCRIPT.format(reason=reason, program=program, tier=tier))
    return path
