"""The loop of a reduction over one row, as the ir.

`pairwise` adds up as NumPy does along the innermost axis, with its bits: up to 128 terms in eight
running sums, more as the sum of two halves, the first a multiple of eight (pairwise summation; its
error grows with the logarithm of the number of terms: N. Higham, "The accuracy of floating point
summation", SIAM J. Sci. Comput. 14(4), 1993). `lanes` takes terms in turn into many running
results, for what has one result in every order. `in_order` takes one term after the other.

The terms of a row are `load(place)`, numbers of one type, for places from `start` on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyfuser.frontends.numpy.expressions import Build, Code
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Assign,
    Binary,
    Body,
    Compare,
    Const,
    Declare,
    DeclareArray,
    Expr,
    For,
    Load,
    Logical,
    Read,
    Select,
    Stmt,
    Store,
    Sym,
    While,
)

I32 = DType.INT32

RowLoad: TypeAlias = Callable[[Expr], Expr]
Found: TypeAlias = tuple[Body, Expr]  # statements, and the result after them

WIDTH = 8  # running sums
BLOCK = 128  # terms that are not halved
_HALVED = 30  # runs of eight that are halved once, at most
LANES = 64


def whole(value: int) -> Const:
    return Const(value, I32)


def levels_of(count: int) -> int:
    """How often a row of so many terms is halved in any case; then it is once more, or not."""
    runs, levels = count // WIDTH, 0
    while -(-runs >> levels) > _HALVED:
        levels += 1
    return levels


def class_of(count: int) -> int:
    """The least number of terms for which the loop is that for `count` of them."""
    if count < WIDTH:
        return 1
    if count <= BLOCK:
        return WIDTH
    levels = levels_of(count)
    return ((_HALVED << (levels - 1)) + 1) * WIDTH if levels else BLOCK + 1


def half_of(count: Expr) -> Expr:
    """The first half of more than 128 terms."""
    return Binary("&", Binary(">>", count, whole(1)), whole(-WIDTH))


def pairwise(code: Code, load: RowLoad, start: Expr, count: Expr, terms: int) -> Found:
    """The sum of `count` terms, of which there are `terms`."""
    if terms <= BLOCK:
        return (_few if terms < WIDTH else _leaf)(code, load, start, count)
    levels = levels_of(terms)
    return _tree(code, load, start, count, levels) if levels else _halved(code, load, start, count)


def _tree(code: Code, load: RowLoad, start: Expr, count: Expr, levels: int) -> Found:
    """A row that is halved `levels` times, part by part.

    Of the sums that wait for the part beside theirs, there is one of each size: as the bits of a
    counter, a part that is odd is added to the one before it, and so is their sum.
    """
    kind = load(start).dtype
    waiting, total = code.sym("waiting", kind), code.sym("sum", kind)
    part, level, odd, size = (code.sym(name, I32) for name in ("part", "level", "odd", "size"))
    begin, up = code.sym("begin", I32), code.sym("up", I32)
    inner, walk = Code(code), Code(code)
    half = walk.let(half_of(Read(size)), "half")
    bit = Binary("&", Binary(">>", Read(part), Read(level)), whole(1))
    after = Compare("==", bit, whole(1))
    chosen = Assign(size, Select(after, Binary("-", Read(size), half), half))
    body, value = _halved(inner, load, Read(begin), Read(size))
    joined = Binary("+", Load(waiting, (Read(up),)), Read(total))
    each = (
        Declare(size, count),
        For(level, whole(levels - 1), whole(-1), whole(-1), (*walk.statements, chosen)),
        *body,
        Declare(total, value),
        Declare(odd, Read(part)),
        Declare(up, whole(0)),
        While(
            Compare("==", Binary("&", Read(odd), whole(1)), whole(1)),
            (
                Assign(total, joined),
                Assign(odd, Binary(">>", Read(odd), whole(1))),
                Assign(up, Binary("+", Read(up), whole(1))),
            ),
        ),
        Store(waiting, (Read(up),), Read(total)),
        Assign(begin, Binary("+", Read(begin), Read(size))),
    )
    statements: Body = (
        DeclareArray(waiting, (Const(0.0, kind),) * (levels + 1)),
        Declare(begin, start),
        For(part, whole(0), whole(1 << levels), whole(1), each),
    )
    return statements, Load(waiting, (whole(levels),))


def _halved(code: Code, load: RowLoad, first: Expr, length: Expr) -> Found:
    """At most 247 terms, as two halves if they are more than 128."""
    own, inner, part = Code(code), Code(code), code.sym("part", I32)
    many = Compare(">", length, whole(BLOCK))
    half = own.let(Select(many, half_of(length), length), "half")
    parts = own.let(Select(Compare("<", half, length), whole(2), whole(1)), "parts")
    second = Compare("==", Read(part), whole(1))
    begin = inner.let(Select(second, Binary("+", first, half), first), "begin")
    size = inner.let(Select(second, Binary("-", length, half), half), "size")
    body, value = _leaf(code, load, begin, size)
    total = code.sym("sum", value.dtype)
    both = Select(second, Binary("+", Read(total), value), value)
    loop = For(part, whole(0), parts, whole(1), (*inner.statements, *body, Assign(total, both)))
    return (*own.statements, Declare(total, Const(0.0, value.dtype)), loop), Read(total)


def _few(code: Code, load: RowLoad, first: Expr, count: Expr) -> Found:
    """Fewer than eight terms, one after the other."""
    k = code.sym("k", I32)
    term = load(Binary("+", first, Read(k)))
    total = code.sym("sum", term.dtype)
    step = Assign(total, Binary("+", Read(total), term))
    loop = For(k, whole(0), count, whole(1), (step,))
    return (Declare(total, Const(-0.0, term.dtype)), loop), Read(total)


def _leaf(code: Code, load: RowLoad, first: Expr, count: Expr) -> Found:
    """8 to 135 terms in eight running sums."""
    k, lane, rest = code.sym("k", I32), code.sym("lane", I32), code.sym("k", I32)
    starts = tuple(load(Binary("+", first, whole(n))) for n in range(WIDTH))
    kind = starts[0].dtype
    sums, total = code.sym("sums", kind), code.sym("sum", kind)
    own = Code(code)
    runs = own.let(Binary("&", count, whole(-WIDTH)), "runs")
    at = Binary("+", first, Binary("+", Read(k), Read(lane)))
    step = Store(sums, (Read(lane),), Binary("+", Load(sums, (Read(lane),)), load(at)))
    parts: list[Expr] = [Load(sums, (whole(n),)) for n in range(WIDTH)]
    while len(parts) > 1:
        parts = [Binary("+", *pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
    one_more = Binary("+", Read(total), load(Binary("+", first, Read(rest))))
    body = (
        *own.statements,
        DeclareArray(sums, starts),
        For(k, whole(WIDTH), runs, whole(WIDTH), (_each(lane, WIDTH, step),)),
        Declare(total, parts[0]),
        For(rest, runs, count, whole(1), (Assign(total, one_more),)),
    )
    return body, Read(total)


def _each(lane: Sym, count: int, *body: Stmt) -> For:
    return For(lane, whole(0), whole(count), whole(1), body)


def lanes(code: Code, build: Build, load: RowLoad, start: Expr, count: Expr) -> Found:
    """The combination of at least one term, in any order; each may be taken twice."""
    k, lane, rest, last = (code.sym(name, I32) for name in ("k", "lane", "k", "lane"))
    first = load(start)
    held, total = code.sym("lanes", first.dtype), code.sym("total", first.dtype)
    own = Code(code)
    runs = own.let(Binary("&", count, whole(-LANES)), "runs")
    at = Binary("+", start, Binary("+", Read(k), Read(lane)))
    inner, tail, end = Code(code), Code(code), Code(code)
    term = inner.let(load(at))
    better = build(inner, inner.let(Load(held, (Read(lane),))), term)
    other = build(tail, Read(total), tail.let(load(Binary("+", start, Read(rest)))))
    joined = build(end, Read(total), end.let(Load(held, (Read(last),))))
    body = (
        *own.statements,
        DeclareArray(held, (first,) * LANES),
        For(k, whole(0), runs, whole(LANES),
            (_each(lane, LANES, *inner.statements, Store(held, (Read(lane),), better)),)),
        Declare(total, first),
        For(rest, runs, count, whole(1), (*tail.statements, Assign(total, other))),
        _each(last, LANES, *end.statements, Assign(total, joined)),
    )  # fmt: skip
    return body, Read(total)


def in_order(
    code: Code, build: Build, load: RowLoad, count: Expr, first: Expr, start: Expr | None = None
) -> Found:
    """The combination of `first`, which has the first term, with those from the second on."""
    k, total = code.sym("k", I32), code.sym("total", first.dtype)
    inner = Code(code)
    place = Read(k) if start is None else Binary("+", start, Read(k))
    step = build(inner, Read(total), inner.let(load(place)))
    loop = For(k, whole(1), count, whole(1), (*inner.statements, Assign(total, step)))
    return (Declare(total, first), loop), Read(total)


def best(code: Code, op: str, load: RowLoad, count: Expr) -> Found:
    """The place of the first term that no other one is `op` than, or of the first NaN."""
    k = code.sym("k", I32)
    term = load(whole(0))
    held, place = code.sym("best", term.dtype), code.sym("place", I32)
    inner = Code(code)
    value = inner.let(load(Read(k)))
    better: Expr = Compare(op, value, Read(held))
    if term.dtype.is_float:
        nan, known = Compare("!=", value, value), Compare("==", Read(held), Read(held))
        better = Logical("&&", known, Logical("||", better, nan))
    better = inner.let(better)
    change = (
        Assign(held, Select(better, value, Read(held))),
        Assign(place, Select(better, Read(k), Read(place))),
    )
    loop = For(k, whole(1), count, whole(1), (*inner.statements, *change))
    return (Declare(held, term), Declare(place, whole(0)), loop), Read(place)
