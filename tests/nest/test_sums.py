"""Nests of sums: the bits of the interpreter's are those of compiled code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyfuser.engine import native
from pyfuser.engine.launchable import team
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Cast, Const, If, Update
from pyfuser.ir.verify import IRError
from pyfuser.ir.visit import contains
from pyfuser.nest.build import LOOP, nest_of
from pyfuser.nest.nodes import RUN, Nest, TiledSums, Trimmed
from pyfuser.nest.passes.split_conditions import INSIDE
from pyfuser.nest.passes.split_guards import AROUND, MIDDLE
from pyfuser.nest.passes.tile_sums import TERMS, tile_sums
from pyfuser.nest.printer import show
from pyfuser.nest.spec import KernelSpec
from pyfuser.nest.verify import verify
from pyfuser.pipeline import lowered
from tests.codegen.build import Case, case, from_text
from tests.nest.harness import copied_sum, spec_for
from tests.nest.interpret import interpret

TYPES = ("float64", "float32", "int64", "complex64")
FALSE = Const(False, DType.BOOL)
SHAPES = (
    (1,),
    (31,),
    (33,),
    (300,),
    (7, 9),
    (5, 40),
    (2, 3, 50),
    (40, 3, 2),
    (3, 70),
    (2, 130),
    (3, 0),
)


def total(i, acc, x):
    acc += x[i]


def edges(i, acc, x, n):
    if i > 0 and i < n - 1:
        acc += x[i - 1] * x[i + 1]
    else:
        acc -= x[i]


def masked(i, acc, x, h):
    if h[i] == 1:
        acc += x[i]


def wins(i, acc, x):
    acc = max(acc, x[i])


def numbers(dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    """Values whose sums depend on the order of additions."""
    found = np.random.default_rng(len(shape)).normal(size=shape) * 1000.0
    return (found * (1 + 0.1j) if "complex" in dtype else found).astype(dtype)


def sums_of(dtype: str, shape: tuple[int, ...], flat: bool = False) -> Case:
    """The sum of a table from a corner on, of the table's type."""
    x, begin = numbers(dtype, *shape), [n % 3 if n > 3 else 0 for n in shape]
    kind = {"float64": "double", "float32": "float"}.get(dtype, dtype)
    indices = "ijk"[: len(shape)]
    head = f"def table({', '.join(indices)}, acc: pk.Acc[pk.{kind}], x):"
    source = f"{head}\n    acc += x{''.join(f'[{i}]' for i in indices)}\n"
    given = case(from_text(source), shape, lambda: [x], "reduce", begin)
    unit = given.kernel.workunit
    (one,) = unit.accumulators
    unit = replace(unit, accumulators=(replace(one, flat=flat),))
    return replace(given, kernel=replace(given.kernel, workunit=unit))


def of_line(function: Callable[..., Any], n: int, count: int = 1) -> Case:
    """Over all of a line; count: how many copies of the sum."""
    arguments = [numbers("float64", n), n][: function.__code__.co_argcount - 2]
    given = case(function, [n], lambda: [*arguments], "reduce")
    return given if count == 1 else copied_sum(given, count)


WHOLE = {"tile": 56, "tiles": 4}
"""Tiles that whole blocks make up, and others."""

SHARED = {**WHOLE, "smallest_tile": 40, "worth_a_thread": 16}
"""Few tiles, of iterations that threads share."""


def of_bytes(n: int, count: int = 1) -> Case:
    """A sum of what bytes choose."""
    x, h = numbers("float32", n), (np.arange(n) % 3 == 1).astype(np.uint8)
    given = case(masked, [n], lambda: [x, h], "reduce")
    return given if count == 1 else copied_sum(given, count)


def spec_of(given: Case, tuning: Mapping[str, int] = WHOLE) -> KernelSpec:
    spec = spec_for(given)
    return replace(spec, tuning=replace(spec.tuning, **tuning))


def interpreted(given: Case, made: Nest, seed: int = 1) -> tuple[Any, ...]:
    verify(made)
    space, arguments = given.kernel.space, given.arguments()
    return interpret(made, space.begin, space.end, arguments, seed)


def same_bits(given: Case, made: Nest, launchable: Any) -> bool:
    expected = exact(given.run(launchable)[1])
    return all(exact(interpreted(given, made, seed)) == expected for seed in (1, 2))


def exact(values: Sequence[Any]) -> list[str]:
    return [repr(np.asarray(value).item()) for value in values]


def of_types(n: int) -> Case:
    """Sums of doubles, floats and integers in one loop: of floats, lanes are twice as many."""
    given = copied_sum(of_line(total, n), 3)
    unit = given.kernel.workunit
    types = (DType.FLOAT64, DType.FLOAT32, DType.INT64)
    syms = [replace(a.sym, dtype=t) for a, t in zip(unit.accumulators, types, strict=True)]
    body = tuple(
        replace(s, target=sym, value=s.value if sym.dtype is types[0] else Cast(s.value, sym.dtype))
        for s, sym in zip(unit.body, syms, strict=True)
        if isinstance(s, Update)
    )
    unit = replace(unit, body=body, accumulators=tuple(map(Accumulator, syms)))
    return replace(given, kernel=replace(given.kernel, workunit=unit))


def all_cases() -> list[Case]:
    made = [
        sums_of(dtype, shape, flat)
        for dtype in TYPES
        for shape in SHAPES
        for flat in (False, True)[: len(shape)]
    ]
    lines = [of_line(edges, n) for n in (1, 2, 3, 64, 200)]
    lines += [of_types(n) for n in (1, 63, 64, 65, 200)]
    lines += [of_bytes(n, count) for n in (1, 63, 64, 65, 130, 400) for count in (1, 20)]
    return [*made, *lines, *(of_line(total, n, 20) for n in (31, 64, 130, 400))]


@pytest.mark.parametrize("tuning", [WHOLE, SHARED])
def test_the_order_of_additions(tuning: Mapping[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """However many threads, and however they share tiles."""
    monkeypatch.setattr(team, "count", 3)
    cases = all_cases()
    specs = [spec_of(given, tuning) for given in cases]
    nests = [lowered(nest_of(spec)) for spec in specs]
    for given, made, launchable in zip(cases, nests, native._prepare(specs), strict=True):
        assert same_bits(given, made, launchable), show(made)
    kinds = {type(s) for made in nests for f in made.functions for s in f.body}
    assert {TiledSums, Trimmed} <= kinds
    done = {name for made in nests for name in made.passes}
    assert {"promote-sums", "split-accumulators", "split-conditions"} <= done


def test_whole_vectors_of_the_narrowest_elements() -> None:
    for count, narrow in ((1, of_bytes), (20, of_bytes), (1, of_line), (20, of_line)):
        given = narrow(400, count) if narrow is of_bytes else of_line(total, 400, count)
        spec = spec_of(given, {})
        spec = replace(spec, target=replace(spec.target, vector_bytes=64))
        (node,) = lowered(nest_of(spec)).functions[-1].body
        assert isinstance(node, TiledSums) and node.most
        assert node.lanes == (64 if narrow is of_bytes else 32)


def test_flat_sums_are_those_of_a_line() -> None:
    apart = 0
    for shape in ((12, 9), (6, 39), (3, 3, 51)):
        found = []
        for flat in (True, False):
            table = sums_of("float64", shape, flat)
            found.append(interpreted(table, lowered(nest_of(spec_of(table)))))
        (x,) = table.arguments()
        values = [x.ravel()]
        line = case(total, [x.size], lambda v=values: v, "reduce")
        assert not any(table.kernel.space.begin)
        assert found[0] == interpreted(line, lowered(nest_of(spec_of(line))))
        apart += found[0] != found[1]
    assert apart


def test_another_order_shows() -> None:
    """Which also shows that these tests see a fault."""
    given = sums_of("float64", (300,))
    made = lowered(nest_of(spec_of(given)))
    *functions, last = made.functions
    (node,) = last.body
    assert isinstance(node, TiledSums)
    other = replace(last, body=(replace(node, block=8, most=0),))
    wrong = replace(made, functions=(*functions, other))
    assert interpreted(given, wrong) != interpreted(given, made)


def test_what_is_not_only_added_to_is_summed_in_order() -> None:
    given = of_line(wins, 40)
    made = nest_of(spec_of(given))
    assert made.serial and tile_sums(made) is made
    assert interpreted(given, made) == given.interpreted()[1]
    assert interpreted(given, lowered(made)) == given.interpreted()[1]
    assert not nest_of(spec_of(of_line(total, 40))).serial


def test_what_verify_refuses() -> None:
    made = lowered(nest_of(spec_of(of_line(edges, 200))))
    *functions, terms, last = made.functions
    conditions = {f.name: contains(f.body, If) for f in functions}
    assert conditions == {INSIDE: False, AROUND: True, MIDDLE: False}
    (node,), (trimmed,) = last.body, terms.body
    assert isinstance(node, TiledSums) and isinstance(trimmed, Trimmed)
    faults = {
        "no function pf_other of such terms": (terms, replace(node, terms="pf_other")),
        "of such terms": (terms, replace(node, arrays=())),
        f"no {RUN} that adds": (terms, replace(node, most=64)),
        "that tells of them": (replace(terms, body=(replace(trimmed, inside=LOOP),)), node),
        "of such terms stands": (replace(terms, body=(replace(trimmed, around=LOOP),)), node),
        "expected int64": (replace(terms, body=(replace(trimmed, count=FALSE),)), node),
    }
    for message, (first, second) in faults.items():
        wrong = (*functions, first, replace(last, body=(second,)))
        with pytest.raises(IRError, match=message):
            verify(replace(made, functions=wrong))
    runs = lowered(nest_of(spec_of(of_line(total, 130, 20))))
    no_run = tuple(f for f in runs.functions if f.name != RUN)
    with pytest.raises(IRError, match=f"no {RUN} that adds"):
        verify(replace(runs, functions=no_run))


def test_text() -> None:
    text = show(lowered(nest_of(spec_of(of_line(edges, 200)))))
    assert f"sums of {TERMS}(" in text and "where pf_inside, else pf_around" in text
