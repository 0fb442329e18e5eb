"""Operators and subscripts."""

from __future__ import annotations

import ast

from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType, common_type
from pyfuser.ir.nodes import (
    Assign,
    Body,
    Cast,
    Const,
    Declare,
    Expr,
    If,
    Load,
    Logical,
    Read,
    Select,
)
from pyfuser.lower import convert
from pyfuser.lower.accumulators import swapped
from pyfuser.lower.context import Context, Variable, lowers
from pyfuser.lower.free import MISSING
from pyfuser.lower.names import hint, outside_object
from pyfuser.lower.views import Axis, LocalArray, ViewRef
from pyfuser.support.units import count

BINARY_OPS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Mod: "%",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}
_UNARY_OPS: dict[type[ast.unaryop], str] = {
    ast.UAdd: "+",
    ast.USub: "-",
    ast.Not: "!",
    ast.Invert: "~",
}
_COMPARE_OPS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


@lowers(ast.BinOp)
def binary_operation(ctx: Context, node: ast.BinOp) -> Expr:
    """Arithmetic; `/`, `//` and `**` mean what PyKokkos makes of them."""
    kind = type(node.op)
    if kind is ast.MatMult:  # before what is said of its operands, which are whole rows
        raise ctx.error(node, "'@' is not supported in a workunit: add up products in a loop")
    left, right = ctx.ordered((node.left, node.right))
    location = ctx.location(node)
    if kind in (ast.FloorDiv, ast.Mod):
        refuse_zero(ctx, node.right, left, right)
    if kind is ast.Div:
        return convert.true_division(left, right)
    if kind is ast.FloorDiv:
        return convert.floor_division(left, right, ctx.shared.index_dtype, location)
    if kind is ast.Pow:
        return convert.call("pow", (left, right))
    op = BINARY_OPS[kind]
    return convert.binary(op, left, right, location)


def refuse_zero(ctx: Context, divisor: ast.expr, *operands: Expr) -> None:
    """Refuse the number 0 as a divisor of integers, which ends a process."""
    zero = isinstance(divisor, ast.Constant) and divisor.value == 0
    if zero and all(operand.dtype.is_integer for operand in operands):
        raise ctx.error(divisor, "integer division by zero")


@lowers(ast.UnaryOp)
def unary_operation(ctx: Context, node: ast.UnaryOp) -> Expr:
    """`-x`, `+x`, `~x`, `not x`."""
    lower = ctx.condition if isinstance(node.op, ast.Not) else ctx.expression
    operand = lower(node.operand)
    if isinstance(node.op, ast.Invert) and operand.dtype is DType.BOOL:
        text = ast.unparse(node.operand)
        ctx.warn(node, f"`~{text}` of a bool is -1 or -2, which are both true: write `not {text}`")
    return convert.unary(_UNARY_OPS[type(node.op)], operand)


@lowers(ast.Compare)
def comparison(ctx: Context, node: ast.Compare) -> Expr:
    """One comparison; chains are not in the language."""
    if len(node.ops) > 1:
        middle = node.comparators[0]
        if isinstance(middle, ast.BinOp) and isinstance(middle.op, (ast.BitAnd, ast.BitOr)):
            sign, word = ("&", "and") if isinstance(middle.op, ast.BitAnd) else ("|", "or")
            raise ctx.error(
                middle, f"{sign!r} comes before comparisons: write `a < b {word} c < d`"
            )
        raise ctx.error(
            node.comparators[1],
            "chained comparisons are not supported: write `a < b and b < c`",
        )
    op = _COMPARE_OPS.get(type(node.ops[0]))
    if op is None:
        instead = (
            "`a == b`" if isinstance(node.ops[0], (ast.Is, ast.IsNot)) else "`a == b or a == c`"
        )
        raise ctx.error(
            node, f"`is` and `in` are not supported in a workunit: compare numbers, as in {instead}"
        )
    left, right = ctx.ordered((node.left, node.comparators[0]))
    for side, other in ((left, node.comparators[0]), (right, node.left)):
        if isinstance(side, Const) and side.value != side.value:
            always = "always true" if op == "!=" else "never true"
            ctx.warn(node, f"a comparison with NaN is {always}: write isnan({ast.unparse(other)})")
    return convert.compare(op, left, right)


@lowers(ast.BoolOp)
def logical_operation(ctx: Context, node: ast.BoolOp) -> Expr:
    """`and`, `or`: short-circuit, also where the right side needs statements of its own."""
    conjunction = isinstance(node.op, ast.And)
    tested = ctx.tested is node
    operands = [result := ctx.condition(node.values[0])]
    for value in node.values[1:]:
        with ctx.hoisted() as before:
            operands.append(right := ctx.condition(value))
        if not before:
            result = Logical("&&" if conjunction else "||", result, right)
            continue
        sym = ctx.temporary("condition", DType.BOOL, result)
        further: Body = (*before, Assign(sym, right))
        ctx.out.append(If(Read(sym), further) if conjunction else If(Read(sym), (), further))
        result = Read(sym)
    if not tested and any(_is_number(operand) for operand in operands):
        ctx.warn(
            node,
            f"`{ast.unparse(node)}` is a bool, 0 or 1, and not one of its operands as in Python: "
            "write `a if a != 0 else b`",
        )
    return result


def _is_number(operand: Expr) -> bool:
    """Whether an operand of `and` or `or` is more than a mark: a float, or a number from 2 on."""
    if not isinstance(operand, Cast):
        return False
    value = operand.operand
    return value.dtype.is_float or (isinstance(value, Const) and value.value not in (0, 1))


@lowers(ast.IfExp)
def conditional(ctx: Context, node: ast.IfExp) -> Expr:
    """`a if c else b`: only the chosen side is evaluated."""
    test = ctx.condition(node.test)
    with ctx.hoisted() as before_then:
        then = ctx.expression(node.body)
    with ctx.hoisted() as before_else:
        orelse = ctx.expression(node.orelse)
    same = then.dtype is orelse.dtype
    dtype = then.dtype if same else common_type(then.dtype, orelse.dtype)
    then, orelse = convert.cast(then, dtype), convert.cast(orelse, dtype)
    if not before_then and not before_else:
        return Select(test, then, orelse)
    sym = fresh("chosen", dtype)
    ctx.out.append(Declare(sym, None))
    ctx.out.append(If(test, (*before_then, Assign(sym, then)), (*before_else, Assign(sym, orelse))))
    return Read(sym)


# --------------------------------------------------------------------------- subscripts


@lowers(ast.Subscript)
def load(ctx: Context, node: ast.Subscript) -> Expr:
    """One element of a view or local array."""
    target, indices = element(ctx, node)
    return Load(target.sym, indices, ctx.location(node))


def element(ctx: Context, node: ast.Subscript) -> tuple[ViewRef | LocalArray, tuple[Expr, ...]]:
    """What `x[i][j]` or `x[i, j]` names: a view or array, and the indices into its base."""
    base, parts = flattened(node)
    target = indexed(ctx, base)
    rank = 1 if isinstance(target, LocalArray) else target.rank
    if len(parts) != rank or any(isinstance(part, ast.Slice) for part in parts):
        raise ctx.error(node, _wrong_rank(node, base, rank, parts))
    visible = ctx.ordered(parts, lambda part: index(ctx, part))
    if isinstance(target, LocalArray):
        return target, tuple(visible)
    return target, target.indices(visible)


def flattened(node: ast.Subscript) -> tuple[ast.expr, list[ast.expr]]:
    """The indexed thing and all its indices: `x[i][j]` and `x[i, j]` give the same."""
    parts: list[ast.expr] = []
    base: ast.expr = node
    while isinstance(base, ast.Subscript):
        inner = base.slice
        parts[:0] = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        base = base.value
    return base, parts


def indexed(ctx: Context, base: ast.expr) -> ViewRef | LocalArray:
    """The view or local array that an expression names."""
    binding = ctx.binding(base)
    if isinstance(binding, (ViewRef, LocalArray)):
        return binding
    text = ast.unparse(base)
    if isinstance(base, ast.Attribute) and isinstance(ctx.binding(base.value), ViewRef):
        ctx.expression(base)  # raises what it raises without an index
    if isinstance(binding, Variable):
        raise ctx.error(base, f"{text!r} is a number: it cannot be indexed")
    if not isinstance(base, (ast.Name, ast.Attribute)):
        raise ctx.error(base, "only views and local arrays can be indexed")
    found = outside_object(ctx, base)[1]
    if found is MISSING:
        advice = hint(ctx, text) or _PASS.format("it")
    elif isinstance(found, dict):
        advice = f", but a dict: pass each entry that is used, as in b={text}['b']"
    elif isinstance(found, (list, tuple)):
        advice = f", but a {type(found).__name__}{_PASS.format(f'np.array({text})')}"
    else:
        advice = _PASS.format("it")
    raise ctx.error(base, f"{text!r} is no view of this workunit{advice}")


_PASS = ": pass {} as a keyword argument of the call"


def index(ctx: Context, node: ast.expr) -> Expr:
    """An index, which is an integer: C++ has no element 1.5 either."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))) if number > 0:
            text = f"{-number} is before the first element: workunits do not count from the end"
            raise ctx.error(node, f"{text}, as C++ does not; write an extent less {number}")
    value = ctx.expression(node)
    if value.dtype is DType.BOOL:
        ctx.warn(
            node,
            f"{ast.unparse(node)!r} is a bool, so as an index it is 0 or 1: to choose elements "
            "write `if`, or int(...) around it if that is meant",
        )
    if value.dtype.is_integer:
        return value
    binding = ctx.binding(node)
    if isinstance(binding, Variable) and binding.kind == "accumulator":
        raise swapped(ctx.source, node, acc=binding.sym.name)
    text = ast.unparse(node)
    instead = f"write int({text})"
    if any(part.arg == text and part.annotation for part in ctx.source.node.args.args):
        instead = f"annotate {text}: int, or write int({text})"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        instead = f"write {ast.unparse(node.left)} // {ast.unparse(node.right)}"
    raise ctx.error(node, f"{text!r} is no integer, and an index has to be one: {instead}")


def _wrong_rank(node: ast.Subscript, base: ast.expr, rank: int, parts: list[ast.expr]) -> str:
    name = ast.unparse(base)
    if any(isinstance(part, ast.Slice) for part in parts):
        part = ast.unparse(node)
        if len(parts) == rank:
            return f"{part!r} is a subview: write `s = {part}` first, and index that in a loop"
        return f"{part!r} is a subview: give it a name first, as in s = {name}[i, :]"
    wrong = f"{name!r} has {count(rank, 'dimension')} but is indexed with {len(parts)}"
    if len(parts) > rank:
        return wrong
    if not parts:
        return f"{name!r} is indexed with nothing: an element is {name}[{', '.join('0' * rank)}]"
    given = ", ".join(map(ast.unparse, parts))
    left = range(rank - len(parts))
    element = ", ".join([given, *"klm"[: len(left)], *["..."] * (len(left) > len("klm"))])
    return (
        f"{wrong}: an element is {name}[{element}], of which a loop takes one after the other; a "
        f"subview is given a name first, `s = {name}[{', '.join([given, *[':' for _ in left]])}]`"
    )


def one_by_one(target: ast.Subscript) -> str:
    """What is wrong with an assignment to a subview, and the loop that does it."""
    index, loops = target.slice, list[str]()
    parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    base = ast.unparse(target.value)
    for axis, part in enumerate(parts):
        if not isinstance(part, ast.Slice):
            continue
        name = "klm"[len(loops)] if len(loops) < len("klm") else f"k{len(loops)}"
        last = ast.unparse(part.upper) if part.upper else f"{base}.extent({axis})"
        first = f"{ast.unparse(part.lower)}, " if part.lower else ""
        loops.append(f"for {name} in range({first}{last}): ")
        parts[axis] = ast.Name(name)
    element = f"{base}[{', '.join(map(ast.unparse, parts))}]"
    return (
        f"{ast.unparse(target)!r} is a subview: assign to one element after the other, as in "
        f"`{''.join(loops)}{element} = ...`"
    )


def is_slicing(node: ast.expr) -> bool:
    """Whether an expression is written as a subview."""
    if not isinstance(node, ast.Subscript):
        return False
    return any(isinstance(part, ast.Slice) for part in flattened(node)[1])


def subview(ctx: Context, node: ast.Subscript) -> ViewRef:
    """`v[i, a:b, :]`: bounds and indices are evaluated here, once."""
    base, parts = flattened(node)
    target = indexed(ctx, base)
    if isinstance(target, LocalArray):
        raise ctx.error(node, "a list cannot be sliced")
    if len(parts) != target.rank:
        raise ctx.error(node, _wrong_rank(node, base, target.rank, parts))
    return target.narrowed([_axis(ctx, target, n, part) for n, part in enumerate(parts)])


def _axis(ctx: Context, target: ViewRef, place: int, part: ast.expr) -> Axis:
    if not isinstance(part, ast.Slice):
        return Axis(fixed=ctx.stable(index(ctx, part), "at"))
    if part.step is not None:
        raise ctx.error(part.step, "a subview has no step: write [a:b]")
    lower = None if part.lower is None else ctx.stable(index(ctx, part.lower), "begin")
    if lower is None and part.upper is None:
        return Axis()
    if part.upper is None:
        upper = target.extent(place)
    else:
        upper = ctx.stable(index(ctx, part.upper), "end")
    upper = convert.cast(upper, DType.INT64)
    if lower is None:
        return Axis(length=upper)
    length = convert.binary("-", upper, convert.cast(lower, DType.INT64))
    return Axis(offset=lower, length=length)
