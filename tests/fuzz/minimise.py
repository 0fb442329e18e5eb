"""Makes a failing program smaller while it goes on failing, and writes it down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tests.fuzz.program import Call, Expr, Program, Statement

_SCRIPT = '''"""A program on which two runs disagree; found by `python -m tests.fuzz`.

{reason}
"""

from tests.fuzz.harness import TIERS
from tests.fuzz.program import Base, Call, Program, Statement

PROGRAM = {program!r}

if __name__ == "__main__":
    print(PROGRAM.source())
    for n, call in enumerate(PROGRAM.calls):
        print(f"work{{n}}:", call.pattern, call.begin, call.end, *call.views, *call.scalars)
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
    for n in reversed(range(len(program.calls))):
        used = {text for call in program.calls for _, text in call.scalars}
        if f"result[{n}]" not in used:
            yield replace(program, calls=_without_call(program.calls, n))
    for n, call in enumerate(program.calls):
        for body in _smaller_bodies(call.body):
            changed = replace(call, body=body)
            yield replace(program, calls=(*program.calls[:n], changed, *program.calls[n + 1 :]))
        for changed in _smaller_spaces(call):
            yield replace(program, calls=(*program.calls[:n], changed, *program.calls[n + 1 :]))
    for n, base in enumerate(program.bases):
        if base.temporary:
            bases = (*program.bases[:n], replace(base, temporary=False), *program.bases[n + 1 :])
            yield replace(program, bases=bases)


def _without_call(calls: tuple[Call, ...], gone: int) -> tuple[Call, ...]:
    """The calls without one; later results move up by one place."""
    kept = []
    for call in (*calls[:gone], *calls[gone + 1 :]):
        scalars = []
        for name, text in call.scalars:
            if text.startswith("result[") and int(text[7:-1]) > gone:
                text = f"result[{int(text[7:-1]) - 1}]"
            scalars.append((name, text))
        kept.append(replace(call, scalars=tuple(scalars)))
    return tuple(kept)


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
