"""Statements that give values to names and elements: declarations and assignments."""

from __future__ import annotations

import ast

from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Assign,
    AtomicFetch,
    Binary,
    Call,
    Cast,
    Const,
    DeclareArray,
    Expr,
    Load,
    Read,
    Store,
    Sym,
    Update,
)
from pyfuser.ir.powers import whole_power
from pyfuser.ir.visit import expressions
from pyfuser.lower import annotation as syntax
from pyfuser.lower import convert, inferred, nested, records
from pyfuser.lower.calls import value as value_of
from pyfuser.lower.context import Context, Record, Variable, lowers
from pyfuser.lower.expressions import (
    BINARY_OPS,
    element,
    is_slicing,
    one_by_one,
    refuse_zero,
    subview,
)
from pyfuser.lower.free import MISSING
from pyfuser.lower.names import hint, outside_object
from pyfuser.lower.team import NestedFunction, Team
from pyfuser.lower.views import LocalArray, ViewRef

_READ_ONLY = {"scalar": "an argument of the call"}

# --------------------------------------------------------------------------- declarations


@lowers(ast.AnnAssign)
def declaration(ctx: Context, node: ast.AnnAssign) -> None:
    """`x: float = e`: a local of exactly that C++ type, in the scope of its block."""
    if not isinstance(node.target, ast.Name):
        _member_declaration(ctx, node)
        return
    name = node.target.id
    made = records.class_of(ctx, node.annotation)
    if made is not None:
        ctx.check_new(node, name)
        ctx.scopes[-1][name] = _object(ctx, node, made[1])
        return
    annotation = syntax.parse(node.annotation)
    if annotation is None or annotation.kind in ("accumulator", "team"):
        what = f"{ast.unparse(node.annotation)!r} is no type for a local variable"
        raise ctx.error(node.annotation, f"{what}: use int, float, bool, pk.int64, ...")
    annotation = annotation.with_real(ctx.shared.real)
    ctx.check_new(node, name)
    if annotation.kind == "view":
        _subview_declaration(ctx, node, name, annotation)
        return
    if annotation.kind == "scratch":
        nested.scratch(ctx, node, name, annotation)
        return
    if annotation.kind == "list":
        assert annotation.dtype is not None
        _array(ctx, node, name, annotation.dtype)
        return
    value = None
    if node.value is not None:
        ctx.scopes[-1][name] = Variable(Sym(name, 0, DType.BOOL), "pending")
        if annotation.dtype is DType.BOOL:
            ctx.tested = node.value
        value = ctx.expression(node.value)
        _warn_of_loss(ctx, node, value, annotation.dtype)
    dtype = annotation.dtype
    if dtype is None:
        if value is None:
            raise ctx.error(node, "a name of type pk.cpp_auto needs a value")
        dtype = value.dtype
    sym = _total(ctx, node, value, dtype)
    if sym is None:
        sym = ctx.temporary(name, dtype, None if value is None else convert.cast(value, dtype))
    ctx.scopes[-1][name] = Variable(sym, "local")


def _total(ctx: Context, node: ast.AnnAssign, value: Expr | None, dtype: DType) -> Sym | None:
    """The sum of a nested reduction, if the name may simply stand for it."""
    call, target = node.value, node.target
    assert isinstance(target, ast.Name)
    if not isinstance(call, ast.Call) or syntax.last_name(call.func) != "parallel_reduce":
        return None
    known = isinstance(value, Read) and value.dtype is dtype
    if not known or target.id in ctx.source.assigned_names:
        return None
    assert isinstance(value, Read)
    return value.sym


def _member_declaration(ctx: Context, node: ast.AnnAssign) -> None:
    """`self.x: float = e` of a classtype's constructor."""
    if ctx.binding(node.target) is None or node.value is None:
        raise ctx.error(node.target, "only a name can be declared")
    _assign(ctx, node.target, value_of(ctx, node.value))


def _object(ctx: Context, node: ast.AnnAssign, cls: type) -> Record:
    """A new local object."""
    value = None if node.value is None else value_of(ctx, node.value)
    if not isinstance(value, Record) or value.cls is not cls:
        raise ctx.error(node, f"a local object starts as one, as in x: {cls.__name__} = ...")
    return records.copy(ctx, node, value)


def _subview_declaration(
    ctx: Context, node: ast.AnnAssign, name: str, annotation: syntax.Annotation
) -> None:
    if node.value is None or not is_slicing(node.value):
        raise ctx.error(node, f"a local view is a subview, as in {name} = v[i, :]")
    assert isinstance(node.value, ast.Subscript)
    view = subview(ctx, node.value)
    if view.rank != annotation.rank or annotation.dtype not in (None, view.dtype):
        raise ctx.error(
            node.annotation, f"the subview is a {view.rank}-D view of {view.dtype.value}"
        )
    ctx.scopes[-1][name] = view


def _array(ctx: Context, node: ast.AnnAssign, name: str, dtype: DType) -> None:
    if not isinstance(node.value, ast.List) or not node.value.elts:
        raise ctx.error(
            node,
            f"a list is declared with its elements written out, as in {name}: List[int] = "
            "[0, 0, 0], without `*`",
        )
    values = tuple(convert.cast(ctx.expression(item), dtype) for item in node.value.elts)
    sym = fresh(name, dtype)
    ctx.out.append(DeclareArray(sym, values))
    ctx.scopes[-1][name] = LocalArray(sym, len(values))


# --------------------------------------------------------------------------- assignments


@lowers(ast.Assign)
def assignment(ctx: Context, node: ast.Assign) -> None:
    """`x = e`, `v[i] = e`, `x = y = e`, and the subview `s = v[i, :]`.

    The first `x = e` declares a local of the value's type: see `inferred`.
    """
    target = node.targets[0]
    if is_slicing(node.value):
        assert isinstance(node.value, ast.Subscript)
        if isinstance(target, ast.Subscript) and is_slicing(target):
            raise ctx.error(target, one_by_one(target))
        if len(node.targets) > 1 or not isinstance(target, ast.Name):
            part = ast.unparse(node.value)
            raise ctx.error(
                node, f"{part!r} is a subview, which is given one name: write `s = {part}` first"
            )
        ctx.check_new(node, target.id)
        ctx.scopes[-1][target.id] = subview(ctx, node.value)
        return
    if isinstance(target, (ast.Tuple, ast.List)):
        raise ctx.error(
            target,
            "a tuple is not supported: assign to one name after the other; what is exchanged is "
            "kept first, as in `t = x[i]`",
        )
    _warn_of_sign(ctx, node)
    value = value_of(ctx, node.value)
    if len(node.targets) == 1:
        _assign(ctx, target, value)
        return
    for target in reversed(node.targets):  # as C++'s `x = y = e`: x gets what y became
        value = _assign(ctx, target, value, again=True)


def _warn_of_sign(ctx: Context, node: ast.Assign) -> None:
    """Warn of `x =+ e`, which Python reads as `x = +e`, and of `x =- e`."""
    value = node.value
    if not (isinstance(value, ast.UnaryOp) and isinstance(value.op, (ast.UAdd, ast.USub))):
        return
    place, lines = value.col_offset, ctx.source.lines
    text = lines[value.lineno - 1].encode() if value.lineno <= len(lines) else b""
    if text[place - 1 : place + 2] in (b"=+ ", b"=- ") or text[place - 1 : place + 1] == b"=+":
        sign = text[place : place + 1].decode()
        ctx.warn(node, f"`={sign}` assigns {ast.unparse(value)}: `{sign}=` is what updates")


def _assign(
    ctx: Context, target: ast.expr, value: Expr | Record, again: bool = False
) -> Expr | Record:
    """Assign to a name, member or element; `again`: the value will be used once more."""
    place = ctx.binding(target)
    if isinstance(target, ast.Name) and not ctx.is_known(target.id):
        return inferred.declare(ctx, target, value)
    if isinstance(value, Record):
        if not isinstance(place, Record):
            raise ctx.error(target, f"{ast.unparse(target)!r} cannot hold an object")
        records.assign(ctx, target, place, value)
        return place
    if isinstance(target, ast.Subscript):
        view, indices, value = _target(ctx, target, value)
        _warn_of_loss(ctx, target, value, view.sym.dtype)
        value = convert.cast(value, view.sym.dtype)
        if again:
            value = ctx.stable(value, "value")
        ctx.out.append(Store(view.sym, indices, value, ctx.location(target)))
        return value
    if not isinstance(target, (ast.Name, ast.Attribute)):
        raise ctx.error(target, "only a name or an element of a view can be assigned to")
    sym = _writable(ctx, target)
    if isinstance(value, Const):
        _warn_of_loss(ctx, target, value, sym.dtype)
    else:
        inferred.warn_of_loss(ctx, target, sym, value)
    ctx.out.append(Assign(sym, convert.cast(value, sym.dtype)))
    return Read(sym)


def _warn_of_loss(ctx: Context, node: ast.AST, value: Expr, dtype: DType | None) -> None:
    """Warn of a number that becomes another one where it is stored: 0.5 or 2**31 in an int32, and
    of a quotient of integers, which is a double, in an integer.
    """
    if dtype is None or not dtype.is_integer or dtype is DType.BOOL:
        return
    if _is_true_quotient(value):
        text = (
            f"`/` gives a double, whose fraction is lost where it is stored as {dtype.value}: "
            "write `//`, or int(...) around it if that is meant"
        )
    elif (number := _number(value)) is not None:
        low, high = dtype.range()
        if low <= number <= high and number == int(number):
            return
        text = f"{number} does not fit into {dtype.value}"
        if value.dtype.is_float and not low - 1 < number < high + 1:  # C++ says nothing of it
            raise ctx.error(
                node,
                f"{text}, which holds {low} to {high}: use a wider "
                "type, such as pk.int64 or pk.double",
            )
        text += ": another number is stored"
    else:
        return
    ctx.warn(node, text)


def _number(value: Expr) -> int | float | None:
    """The number that is written there, if it is one, or a power of two that are."""
    if isinstance(value, Const) and not isinstance(value.value, (str, complex)):
        return value.value
    if isinstance(value, Call) and value.name == "pow":
        base, exponent = (_number(arg.operand) for arg in value.args if isinstance(arg, Cast))
        if isinstance(base, int) and isinstance(exponent, int):
            return whole_power(base, exponent)
    return None


def _is_true_quotient(value: Expr) -> bool:
    """Whether a value is `a / b` of integers, as a double."""
    if not (isinstance(value, Binary) and value.op == "/" and value.dtype.is_float):
        return False
    return all(
        isinstance(operand, Const)
        or (isinstance(operand, Cast) and operand.operand.dtype.is_integer)
        for operand in (value.left, value.right)
    )


def _target(
    ctx: Context, target: ast.Subscript, value: Expr
) -> tuple[ViewRef | LocalArray, tuple[Expr, ...], Expr]:
    """The element that is assigned to; the right side is evaluated before its indices."""
    if is_slicing(target):
        raise ctx.error(target, one_by_one(target))
    with ctx.hoisted() as before:
        place, indices = element(ctx, target)
    if before:
        value = ctx.stable(value, "value")
        ctx.out.extend(before)
    return place, indices, value


def _writable(ctx: Context, target: ast.Name | ast.Attribute) -> Sym:
    """The variable that is assigned to."""
    name = ast.unparse(target)
    binding = ctx.binding(target)
    if isinstance(binding, Variable) and binding.kind in ("local", "accumulator"):
        if binding.kind == "local" and ctx.is_captured(name):
            raise ctx.error(
                target,
                f"{name!r} belongs to the code around: iterations of a nested pattern would write "
                "it at once; use an accumulator or an element of a view",
            )
        return binding.sym
    if binding is None and isinstance(target, ast.Attribute):
        is_view = isinstance(ctx.binding(target.value), ViewRef)
        why = ": a view keeps its shape and type" if is_view else ""
        raise ctx.error(target, f"{name!r} is no member that can be assigned to{why}")
    if binding is None:
        advice = hint(ctx, name)
        if outside_object(ctx, target)[1] is not MISSING:
            advice = (
                f": a workunit cannot change what is called {name!r} outside; add to the "
                "accumulator of a parallel_reduce, or change an element of a view"
            )
        raise ctx.error(target, f"{name!r} has no value yet{advice}")
    if isinstance(binding, Variable):
        what = _READ_ONLY.get(binding.kind, f"the {binding.kind}")
        instead = f"`value = {name}`, and change that"
        if binding.kind == "scalar":
            instead += (
                "; results are elements of views, as in result[i] = ..., or the sum of a "
                "parallel_reduce, whose workunit has an accumulator after its indices"
            )
        raise ctx.error(target, f"{name!r} is {what}: it cannot be assigned to; write {instead}")
    if isinstance(binding, (Team, NestedFunction)):
        raise ctx.error(target, f"{name!r} cannot be assigned to")
    if isinstance(binding, Record):
        raise ctx.error(target, f"{name!r} is an object: a number cannot be assigned to it")
    raise ctx.error(target, f"{name!r} is a view: assign to an element, as in {name}[i] = ...")


@lowers(ast.AugAssign)
def update(ctx: Context, node: ast.AugAssign) -> None:
    """`x op= e`: computed in the common type and converted to the target's, as in C++.

    `/=` and `//=` are both C++'s `/=`, as PyKokkos has them.
    """
    kind = type(node.op)
    op = "/" if kind in (ast.Div, ast.FloorDiv) else BINARY_OPS.get(kind)
    if op is None:
        raise ctx.error(node, "`**=` and `@=` are not supported: write the operation out")
    value = ctx.expression(node.value)
    if op == "%":
        refuse_zero(ctx, node.value, value)
    if isinstance(node.target, ast.Subscript):
        sym = _update_element(ctx, node.target, op, value)
    else:
        sym = _update_name(ctx, node.target, op, value)
    if kind is ast.Div and sym.dtype.is_integer:
        ctx.warn(
            node,
            f"`/=` of {ast.unparse(node.target)!r}, which is of type {sym.dtype.value}, drops the "
            "fraction: write `//=` if that is meant, or make it a pk.double",
        )


def _update_element(ctx: Context, target: ast.Subscript, op: str, value: Expr) -> Sym:
    place, indices, value = _target(ctx, target, value)
    sym, location = place.sym, ctx.location(target)
    if sym in ctx.shared.atomic:  # what Kokkos makes of a View with the trait Atomic
        operand = convert.cast(value, sym.dtype)
        ctx.out.append(Update(op, sym, indices, operand, True, location))
        return sym
    common = convert.operation_type(op, sym.dtype, value.dtype)
    if common is sym.dtype and not isinstance(place, LocalArray):
        operand = convert.promoted(value) if op in ("<<", ">>") else convert.cast(value, common)
        ctx.out.append(Update(op, sym, indices, operand, False, location))
        return sym
    indices = tuple(_repeatable(ctx, i) for i in indices)
    result = convert.binary(op, Load(sym, indices, location), value, location)
    ctx.out.append(Store(sym, indices, convert.cast(result, sym.dtype), location))
    return sym


def _repeatable(ctx: Context, index: Expr) -> Expr:
    """An index that may be evaluated twice."""
    effects = any(isinstance(e, AtomicFetch) for e in expressions(index))
    return ctx.stable(index, "at") if effects else index


def _update_name(ctx: Context, target: ast.Name | ast.Attribute, op: str, value: Expr) -> Sym:
    sym = _writable(ctx, target)
    inferred.warn_of_loss(ctx, target, sym, value)
    binding = ctx.binding(target)
    common = convert.operation_type(op, sym.dtype, value.dtype)
    accumulates = isinstance(binding, Variable) and binding.kind == "accumulator"
    if accumulates and op in ("+", "-") and common is sym.dtype:
        # a - b is a + (-b), exactly: one form for every sum
        operand = convert.cast(value, common)
        operand = operand if op == "+" else convert.unary("-", operand)
        ctx.out.append(Update("+", sym, (), operand, False, ctx.location(target)))
        return sym
    result = convert.binary(op, Read(sym), value, ctx.location(target))
    ctx.out.append(Assign(sym, convert.cast(result, sym.dtype)))
    return sym
