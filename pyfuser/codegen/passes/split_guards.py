"""Index set splitting: where every guard of a body holds, its loops run without them.

A body may have parts for a smaller box than its loop's (see `ir.guarded`). The box that all these
have in common runs a body without guards, which vectorises as the parts do alone; what lies around
it, a slab before and one behind along each axis, runs the body with all guards, so that it does not
matter which box begins or ends first. Iterations of a map are unordered, and of one axis the order
stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import Context, function
from pyfuser.ir.dtypes import DType
from pyfuser.ir.guarded import Bound, Unguarded, unguarded
from pyfuser.support.passes import left_out

ALIGNED = 8
"""Elements that fill cache lines: the middle begins at a multiple, so as to store whole lines."""

MIDDLE = "pf_middle"
"""The function that runs the body without guards."""

STRIP = 16
"""Steps of the outermost of two axes that are split at a time: the slabs' lines stay in cache."""

LOCALS = frozenset({"low", "high", "part", "upto", "piece", "strip"})


@dataclass(frozen=True, slots=True)
class _Limits:
    """The bounds of the guards of an axis, in C++.

    narrow: whether some of them are compared with 32 bits of the index.
    """

    lower: tuple[str, ...]
    upper: tuple[str, ...]
    narrow: bool


def splits(context: Context) -> Unguarded | None:
    """The body without guards, if the loop is to be split; the order of iterations may show."""
    spec = context.spec
    if spec.checked or spec.pattern != "for" or (spec.serial and spec.rank > 1):
        return None
    if left_out("split-guards"):
        return None
    return unguarded(spec.workunit)


def split_code(context: Context, bounds: tuple[Bound, ...]) -> str:
    """`pf_loop`, which runs a box of the space as `pf_around` and `pf_middle`."""
    limits = [_limits(context, bounds, axis) for axis in range(context.spec.rank)]
    if context.spec.rank == 1:
        lines = _line(context, limits[0])
        parameters = ["int64_t begin", "int64_t end"]
    else:
        lines = _box(context, limits)
        parameters = ["const int64_t* begin", "const int64_t* end"]
    code = [INDENT + line for line in lines]
    return function("void pf_loop", [*parameters, *context.signature], code)


def _limits(context: Context, bounds: tuple[Bound, ...], axis: int) -> _Limits:
    own = [b for b in bounds if b.sym == context.spec.workunit.indices[axis]]
    return _Limits(
        tuple(context.names[b.limit] for b in own if not b.upper),
        tuple(context.names[b.limit] for b in own if b.upper),
        any(b.limit.dtype is DType.INT32 for b in own),
    )


def _narrowed(limits: _Limits, begin: str, end: str, aligned: bool) -> list[str]:
    """`low` and `high`, between which all guards of an axis hold."""
    lines = [f"int64_t low = {begin}, high = {end};"]
    lines += [f"if (low < (int64_t){name}) low = {name};" for name in limits.lower]
    if aligned and limits.lower:
        lines.append(f"low = {begin} + (low - {begin} + {ALIGNED - 1}) / {ALIGNED} * {ALIGNED};")
    lines += [f"if (high > (int64_t){name}) high = {name};" for name in limits.upper]
    if limits.narrow:
        ends = (begin, f"{end} - 1")
        wide = " || ".join(f"(int32_t)({value}) != {value}" for value in ends)
        lines.append(f"if ({wide}) high = low;")
    return lines


def _line(context: Context, limits: _Limits) -> list[str]:
    tail = "".join(", " + a for a in context.arguments)
    return [
        *_narrowed(limits, "begin", "end", True),
        f"if (low >= high) return pf_around(begin, end{tail});",
        f"if (begin < low) pf_around(begin, low{tail});",
        f"{MIDDLE}(low, high{tail});",
        f"if (high < end) pf_around(high, end{tail});",
    ]


def _box(context: Context, limits: list[_Limits]) -> list[str]:
    """Peel slabs off the box, axis by axis, a few steps of its outermost loop at a time."""
    rank, order = context.spec.rank, context.spec.order
    tail = "".join(", " + a for a in context.arguments)
    outer, inner = order.axes[0], order.axes[-1]
    steps = order.block or (STRIP if rank == 2 else 1)
    lines = [
        f"for (int64_t strip = begin[{outer}]; strip < end[{outer}]; strip += {steps}) {{",
        f"    int64_t part[{rank}], upto[{rank}];",
        f"    for (int dim = 0; dim < {rank}; ++dim) {{",
        "        part[dim] = begin[dim];",
        "        upto[dim] = end[dim];",
        "    }",
        f"    part[{outer}] = strip;",
        f"    if (strip + {steps} < end[{outer}]) upto[{outer}] = strip + {steps};",
    ]
    for axis in order.axes:
        if not limits[axis].lower and not limits[axis].upper:
            continue
        lines += [
            "    {",
            *(f"        {line}" for line in _slabs(limits[axis], axis, axis == inner, tail)),
            "    }",
        ]
    return [*lines, f"    {MIDDLE}(part, upto{tail});", "}"]


def _slabs(limits: _Limits, axis: int, aligned: bool, tail: str) -> list[str]:
    """Run what lies before and behind the middle along an axis, and leave the rest."""
    return [
        *_narrowed(limits, f"part[{axis}]", f"upto[{axis}]", aligned),
        "if (low >= high) {",
        f"    pf_around(part, upto{tail});",
        "    continue;",
        "}",
        f"const int64_t piece = upto[{axis}];",
        f"if (part[{axis}] < low) {{",
        f"    upto[{axis}] = low;",
        f"    pf_around(part, upto{tail});",
        f"    part[{axis}] = low;",
        "}",
        "if (high < piece) {",
        f"    part[{axis}] = high;",
        f"    upto[{axis}] = piece;",
        f"    pf_around(part, upto{tail});",
        f"    part[{axis}] = low;",
        "}",
        f"upto[{axis}] = high;",
    ]
