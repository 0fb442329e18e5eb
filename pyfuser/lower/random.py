"""`pk.rand(T)`: a generator for each iteration, as arithmetic on a local of 64 bits.

Kokkos draws from a pool of generators, one for each thread. Here every iteration has its own: its
first state is a hash (splitmix64: Steele, Lea and Flood 2014) of the pool's seed and the
iteration's indices, and a draw is Kokkos' own (xorshift64*: Vigna 2016). So numbers depend on
nothing else, and the workunit stays a map that fuses.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Assign, Binary, Cast, Compare, Const, Declare, Expr, Read, Select, Sym
from pyfuser.lower.annotation import scalar_type
from pyfuser.lower.context import Context

_GOLDEN = 0x9E3779B97F4A7C15
_MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_MULTIPLIER = 2685821657736338717
_FOR_ZERO = 1318319  # the state that Kokkos takes instead of 0
_ALL_BITS = 2**64 - 1


def number(ctx: Context, node: ast.Call) -> Expr:
    """The next random number of this iteration."""
    dtype = scalar_type(node.args[0]) if len(node.args) == 1 and not node.keywords else None
    if dtype not in _DRAWS:
        raise ctx.error(
            node, "pk.rand takes one data type: int, float, or pk.int32 ... pk.uint64, pk.float"
        )
    if ctx.shared.pool is None:
        raise ctx.error(
            node,
            "pk.rand needs a pool: declare one in the constructor, as in "
            "self.pool: pk.Random_XorShift64_Pool = ..., or annotate a parameter so",
        )
    if ctx.shared.random_state is None:
        ctx.shared.random_state = fresh("random_state", DType.UINT64)
    state = ctx.shared.random_state
    for shift in (">>", 12), ("<<", 25), (">>", 27):
        ctx.out.append(Assign(state, _op("^", Read(state), _op(*_shifted(Read(state), shift)))))
    word = _op("*", Read(state), _word(_MULTIPLIER))
    return ctx.stable(_DRAWS[dtype](word), "random")


def first_state(state: Sym, pool: Sym, indices: tuple[Sym, ...]) -> list[Declare | Assign]:
    """The declaration of the state at the start of an iteration."""
    seed = fresh("seed", DType.UINT64)
    result: list[Declare | Assign] = [Declare(seed, Read(pool))]
    for index in indices:
        position = _op("*", Cast(Read(index), DType.UINT64), _word(_GOLDEN))
        result.append(Assign(seed, _op("+", _op("+", Read(seed), position), _word(_GOLDEN))))
        for shift, factor in _MIX:
            mixed = _op("^", Read(seed), _op(*_shifted(Read(seed), (">>", shift))))
            result.append(Assign(seed, _op("*", mixed, _word(factor))))
        result.append(Assign(seed, _op("^", Read(seed), _op(*_shifted(Read(seed), (">>", 31))))))
    is_zero = Compare("==", Read(seed), _word(0))
    return [*result, Declare(state, Select(is_zero, _word(_FOR_ZERO), Read(seed)))]


def _op(op: str, left: Expr, right: Expr) -> Expr:
    return Binary(op, left, right)


def _word(value: int) -> Const:
    return Const(value, DType.UINT64)


def _shifted(value: Expr, shift: tuple[str, int]) -> tuple[str, Expr, Expr]:
    return shift[0], value, Const(shift[1], DType.INT32)


def _wide(word: Expr) -> Expr:
    return _op("-", word, _word(1))


def _narrow(word: Expr) -> Expr:
    return Cast(_op(*_shifted(word, (">>", 16))), DType.UINT32)


def _half(word: Expr, dtype: DType) -> Expr:
    return Cast(_op("/", word, Const(2, word.dtype)), dtype)


def _fraction(word: Expr, dtype: DType) -> Expr:
    """From 0 to 1, which rounding may reach."""
    return _op("/", Cast(_wide(word), dtype), Cast(_word(_ALL_BITS), dtype))


_DRAWS: dict[DType | None, Callable[[Expr], Expr]] = {
    DType.INT32: lambda word: _half(_narrow(word), DType.INT32),
    DType.INT64: lambda word: _half(_wide(word), DType.INT64),
    DType.UINT32: _narrow,
    DType.UINT64: _wide,
    DType.FLOAT32: lambda word: _fraction(word, DType.FLOAT32),
    DType.FLOAT64: lambda word: _fraction(word, DType.FLOAT64),
}
