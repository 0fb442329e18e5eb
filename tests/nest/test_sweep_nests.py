"""Nests of sweeps: in any order that may come they do what their loops do one by one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pyfuser.engine.launchable import team
from pyfuser.ir.verify import IRError
from pyfuser.nest.build import nest_of, sweep_of
from pyfuser.nest.nodes import SweepNest
from pyfuser.nest.printer import show_sweep
from pyfuser.nest.spec import KernelSpec, SweepSpec
from pyfuser.nest.verify import verify_sweep
from pyfuser.pipeline import lowered, lowered_sweep
from pyfuser.plan.plan import Stage
from pyfuser.plan.plan import Sweep as PlannedSweep
from pyfuser.tuning.thresholds import DEFAULT
from tests.codegen.build import from_text
from tests.codegen.test_chain import PREFIXES
from tests.codegen.test_sweep import TOTALS, Loop, Sweep, copy, double_in_place, line, numbers
from tests.nest.interpret import interpret
from tests.nest.sweeps import interpret_sweep

RIM = 2
SIZES = (6, 9, 23, 40)


TUNING = replace(DEFAULT, tile=8, tiles=5, scan_tile=4)


def tuned(spec: KernelSpec) -> KernelSpec:
    """With tiles that an interpreter sees several of."""
    return replace(spec, tuning=TUNING)


def nest_for(sweep: Sweep) -> SweepNest:
    spec = sweep.spec()
    nest = lowered_sweep(SweepSpec(tuple(map(tuned, spec.stages)), spec.rolling))
    verify_sweep(nest)
    return nest


def together(sweep: Sweep, wave: int, parts: int, seed: int, ring: bool = False) -> list[bytes]:
    """The bits of all arrays and results after the loops ran as a sweep."""
    memory = sweep._copies()
    arguments = [[memory[name] for name in loop.arrays.split()] for loop in sweep.loops]
    stages = tuple(Stage(loop.lag, loop.ahead) for loop in sweep.loops)
    planned = PlannedSweep(tuple(range(len(stages))), stages, wave, ring=ring)
    spaces = [kernel.space for kernel in sweep.kernels]
    values = interpret_sweep(nest_for(sweep), planned, spaces, arguments, parts, seed)
    return sweep._bits(memory, values)


def apart(sweep: Sweep) -> list[bytes]:
    """The same after they ran one by one."""
    memory, values = sweep._copies(), list[Any]()
    for loop, kernel, spec in zip(sweep.loops, sweep.kernels, sweep.spec().stages, strict=True):
        arguments = [memory[name] for name in loop.arrays.split()]
        nest = lowered(nest_of(tuned(spec)))
        values += interpret(nest, kernel.space.begin, kernel.space.end, arguments)
    return sweep._bits(memory, values)


def random_sweep(seed: int, rank: int, later: int = 0) -> Sweep:
    """Stencils on what loops before made, and sums of that.

    later: by how much a loop is too early for what it reads ahead.
    """
    rng = random.Random(seed)
    place = "[i]" if rank == 1 else "[i][j]"
    loops, lags = list[Loop](), {"v0": (0, 0)}
    for n in range(1, rng.randint(2, 4) + 1):
        read = rng.sample(sorted(lags), min(len(lags), rng.randint(1, 2)))
        reads = [(name, rng.randint(-RIM, RIM)) for name in read for _ in range(rng.randint(1, 2))]
        lag = max(lags[name][0] + max(at, 0) for name, at in reads)
        ahead = max(lags[name][1] + max(-at, 0) for name, at in reads)
        lags[f"v{n}"] = lag, ahead
        terms = " + ".join(f"{name}{place.replace('i', f'i + {at}')}" for name, at in reads)
        text = rng.choice(("{v} = {t}", "if i > 3:\n        {v} = 0.5 * ({t})", "{v} += {t} - 1.0"))
        given = [*dict.fromkeys(name for name, _ in reads), f"v{n}"]
        head = f"def body({', '.join('ij'[:rank])}, {', '.join(given)}):"
        source = f"{head}\n    {text.format(v=f'v{n}{place}', t=terms)}\n"
        function = from_text(source)
        loops.append(Loop(function, " ".join(given), max(lag - later, 0), ahead, RIM))
        if rng.random() < 0.5:
            name = rng.choice(given)
            head = f"def body({', '.join('ij'[:rank])}, acc, {name}):"
            function = from_text(f"{head}\n    acc += {name}{place}\n")
            own = lags[name]
            loops.append(Loop(function, name, *own, RIM, "reduce"))
    size = rng.choice(SIZES)
    shape = size if rank == 1 else (size, 7)
    return Sweep(loops, {name: numbers(shape, seed=k) for k, name in enumerate(lags)})


@pytest.mark.parametrize("rank", [1, 2])
def test_random_sweeps(rank: int) -> None:
    for seed in range(60 // rank):
        sweep = random_sweep(seed, rank)
        expected = apart(sweep)
        for parts, wave in ((1, 3), (2, 1), (3, 5)):
            assert together(sweep, wave, parts, seed) == expected, (seed, parts)


def test_loops_that_are_too_early_show() -> None:
    """The test of the tests."""
    sweeps = [random_sweep(seed, 1, later=1) for seed in range(60)]
    late = [s for s in sweeps if together(s, 1, 2, 1) != apart(s)]
    assert len(late) >= 10


@pytest.mark.parametrize("dtype", TOTALS)
def test_sums_have_the_bits_of_compiled_ones(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "count", 2)
    sweep = line(300, dtype)
    nest = lowered_sweep(sweep.spec())
    memory = sweep._copies()
    arguments = [[memory[name] for name in loop.arrays.split()] for loop in sweep.loops]
    stages = tuple(Stage(loop.lag, loop.ahead) for loop in sweep.loops)
    planned = PlannedSweep(tuple(range(len(stages))), stages, 7)
    spaces = [kernel.space for kernel in sweep.kernels]
    values = interpret_sweep(nest, planned, spaces, arguments, 2)
    assert sweep._bits(memory, values) == sweep.together(7)


def around(dtype: str, n: int, execution: str = "OpenMP") -> Sweep:
    """Maps that make what is summed, and that use the sums."""
    loops = [
        Loop(double_in_place, "x"),  # an iteration that runs twice shows
        Loop(copy, "x y"),
        Loop(PREFIXES[dtype], "y z", pattern="scan"),
        Loop(copy, "z w"),
        Loop(double_in_place, "y"),
    ]
    arrays = {name: numbers(n, dtype, k) for k, name in enumerate("xyzw")}
    return Sweep(loops, arrays, execution)


@pytest.mark.parametrize("execution", ["OpenMP", "Serial"])
@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_scans_with_the_maps_around_them(dtype: str, execution: str) -> None:
    for n in (1, 3, 4, 5, 21):
        sweep = around(dtype, n, execution)
        assert nest_for(sweep).scan == 2
        expected = apart(sweep)
        for seed in range(6):
            assert together(sweep, 4, 1, seed) == expected


def test_equal_loops_share_a_nest() -> None:
    nest = nest_for(around("int32", 9))
    assert nest.stages == (0, 1, 2, 1, 0)
    text = show_sweep(nest)
    assert text.startswith("sweep of loops 0, 1, 2, 1, 0 by the tiles of 2, shared by threads\n")
    assert "\nloop 1:\n" in text
    assert "in steps, shared by threads\n" in show_sweep(nest_for(line(100)))


def test_what_verify_refuses() -> None:
    sums, scans = line(100).spec().stages, around("int32", 9).spec().stages
    faults: dict[str, Sequence[KernelSpec]] = {
        "only maps go with a scan": (*sums[:1], *scans),
        "views are kept whole": (*scans, *scans),
        "of which views": (*sums, *scans[2:3]),
    }
    for message, stages in faults.items():
        with pytest.raises(IRError, match=message):
            verify_sweep(lowered_sweep(SweepSpec(tuple(stages))))
    with pytest.raises(IRError, match="sums of a sweep are tiled"):
        verify_sweep(sweep_of(SweepSpec(sums)))
