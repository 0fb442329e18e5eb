"""Random programs of teams: `python -m tests.fuzz.teams --programs N --seed S [--device]`.

The oracle runs the members of a team as threads of Python, over NumPy's arrays, call by call. It is
compared with the program as a user would write it: its calls one by one, and fused.
"""

from __future__ import annotations

import argparse
import contextlib
import linecache
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import pyfuser
from pyfuser.runtime.session import SESSION
from tests import teams
from tests.fuzz.__main__ import campaign, in_time
from tests.fuzz.harness import Mismatch, Outcome
from tests.fuzz.team_maker import ARRAYS, TeamCall, TeamProgram, random_teams
from tests.gpu.conftest import on_gpu

# isort: split
import pykokkos as pk

Arrays = dict[str, Any]
State = tuple[Arrays, list[float | None]]


def functions(program: TeamProgram) -> list[Any]:
    """The workunits of the calls."""
    text = "from __future__ import annotations\n" + program.source()
    name = f"<fuzz teams {program.seed % 8}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"__name__": "program"}
    exec(compile(text, name, "exec", dont_inherit=True), namespace)
    return [namespace[f"work{n}"] for n in range(len(program.calls))]


def arrays(program: TeamProgram) -> Arrays:
    """What the program starts with: small whole numbers; temporaries are zero."""
    rng = np.random.default_rng(program.seed)
    made = {}
    for name in ARRAYS:
        values = rng.integers(-4, 6, program.shape(name))
        kind = np.float32 if name in program.single else np.float64
        made[name] = (values * (name not in program.temporary)).astype(kind)
    return made


def expected(program: TeamProgram, works: list[Any]) -> State:
    """What Python's threads compute."""
    memory, results = arrays(program), []
    for call, work in zip(program.calls, works, strict=True):
        given = _given(program, call, memory)
        if call.size >= 0:
            value = teams.run(work, program.league, max(call.size, 1), call.reduces, **given)
        else:
            total, plain = teams.Acc(), work.__pyfuser__.function
            for rank in range(program.league):
                plain(rank, *([total] if call.reduces else []), **given)
            value = float(total)
        results.append(value if call.reduces else None)
    return memory, results


def found(program: TeamProgram, works: list[Any], fused: bool) -> State:
    """What we compute."""
    memory: Arrays = {}
    for name, values in arrays(program).items():
        if name in program.temporary:
            kind = pk.float if name in program.single else pk.double
            memory[name] = pk.View(list(program.shape(name)), kind)
        else:
            memory[name] = pk.array(values)
    results: list[Any] = []
    with pyfuser.fusing() if fused else contextlib.nullcontext():
        for n, (call, work) in enumerate(zip(program.calls, works, strict=True)):
            pattern = pk.parallel_reduce if call.reduces else pk.parallel_for
            given = _given(program, call, memory)
            results.append(pattern(_policy(program, call), work, **given))
            later = {name for other in program.calls[n + 1 :] for name in other.arrays}
            for name in program.temporary - later:
                memory.pop(name, None)
            del given
    kept = {name: np.asarray(memory[name]) for name in memory if name not in program.temporary}
    return kept, [None if value is None else float(value) for value in results]


def _given(program: TeamProgram, call: TeamCall, memory: Arrays) -> Arrays:
    sizes = {"n": program.columns, "m": program.depth}
    return {name: memory[name] for name in call.arrays} | sizes


def _policy(program: TeamProgram, call: TeamCall) -> Any:
    if call.size < 0:
        return pk.RangePolicy(0, program.league)
    return pk.TeamPolicy(program.league, call.size or pk.AUTO)


def check(program: TeamProgram) -> Outcome:
    """Raises Mismatch where the program, fused or not, does not compute what threads do."""
    works = functions(program)
    want = expected(program, works)
    for fused in (False, True):
        SESSION.flushes.clear()
        got = found(program, works, fused)
        for name, values in got[0].items():
            if not np.array_equal(values, want[0][name]):
                raise Mismatch(f"{fused=} {name}: {values!r}\nnot {want[0][name]!r}")
        if got[1] != want[1]:
            raise Mismatch(f"{fused=} results: {got[1]}\nnot {want[1]}")
    groups = [group.calls for flush in SESSION.flushes for group in flush.program.plan.groups]
    return Outcome(len(program.calls), groups)


def minimised(program: TeamProgram, error: Exception) -> TeamProgram:
    """The program with calls and phases left out, as long as it fails as before."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(program):
            try:
                check(candidate)
            except Exception as other:
                pyfuser.discard()
                if type(other) is type(error):
                    program, smaller = candidate, True
                    break
    return program


def _smaller(program: TeamProgram) -> Iterator[TeamProgram]:
    calls = program.calls
    for n in range(len(calls)):
        yield replace(program, calls=calls[:n] + calls[n + 1 :])
    for n, call in enumerate(calls):
        for at in range(len(call.phases)):
            less = replace(call, phases=call.phases[:at] + call.phases[at + 1 :])
            yield replace(program, calls=(*calls[:n], less, *calls[n + 1 :]))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.fuzz.teams", description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--minutes", type=float, help="begin no program after so many")
    parser.add_argument("--device", action="store_true", help="on a GPU, or the stand-in for one")
    options = parser.parse_args(arguments)

    def report(program: TeamProgram, error: Exception) -> None:
        pyfuser.discard()
        small = minimised(program, error)
        print(f"seed {program.seed}: {type(error).__name__}: {error}\n{small}\n{small.source()}")

    seeds = range(options.seed, options.seed + options.programs)
    with on_gpu() if options.device else contextlib.nullcontext():
        totals = campaign(in_time(seeds, options.minutes), check, report, random_teams)
    print(totals.table())
    return 1 if totals.failed else 0


if __name__ == "__main__":
    sys.exit(main())
