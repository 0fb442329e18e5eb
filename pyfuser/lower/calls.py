"""Calls: conversions, mathematical functions, printf, atomics, `extent`, and device functions."""

from __future__ import annotations

import ast
import builtins
import difflib
from collections.abc import Callable
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

from pyfuser.ir.dtypes import DType, integral_promotion
from pyfuser.ir.maths import FUNCTIONS
from pyfuser.ir.nodes import AtomicFetch, Call, Cast, Const, Eval, Expr
from pyfuser.lower import atomics, convert, nested, random
from pyfuser.lower.annotation import last_name
from pyfuser.lower.context import Context, Record, lowers
from pyfuser.lower.expressions import indexed, is_slicing, subview
from pyfuser.lower.extremes import extreme
from pyfuser.lower.formats import wrong_format
from pyfuser.lower.free import MISSING, outside, unwrapped
from pyfuser.lower.inline import Argument, inline
from pyfuser.lower.names import attribute, member_of, outside_object, take
from pyfuser.lower.records import class_of, declare, fresh_record
from pyfuser.lower.team import Team
from pyfuser.lower.views import LocalArray, ViewRef
from pyfuser.support.errors import WorkunitError

# What PyKokkos makes of a type's name that is called: `float(x)` is C++'s 32-bit float.
_CONVERSIONS = {
    **{dtype.value: dtype for dtype in DType if not dtype.is_complex},
    "int": DType.INT32,
    "float": DType.FLOAT32,
    "double": DType.FLOAT64,
}
_COMPLEX = {
    "complex32": DType.COMPLEX64,
    "complex64": DType.COMPLEX128,
    "complex128": DType.COMPLEX128,
}
_KNOWN = {*FUNCTIONS, *_CONVERSIONS, *_COMPLEX} - {"complex", "fma", "imag", "real"}
_RANDOM = "use pk.rand(float), with a parameter `pool: pk.RandomPool`"
_LOCAL_ARRAY = "an array of the iteration is `name: List[float] = [0.0, 0.0]`"
_TIME = "take the time outside, around a pk.fence()"
_TEAM = "only the member of a team has it: call the workunit with a pk.TeamPolicy"
_INSTEAD = {
    "print": "use pk.printf",
    "sync": "the program calls it, after the launch",
    "fence": "the program calls it, after the launch",
    "len": "use view.extent(0)",
    "min": "use min(a, b), or fmin of floating-point numbers",
    "max": "use max(a, b), or fmax of floating-point numbers",
    "range": "it belongs into a for statement",
    "get_state": "give the workunit a `pool: pk.RandomPool`, and call pk.rand(float)",
    "append": "a list keeps its length",
    "fill": "assign to the elements",
    "sum": "add up in a loop, or use parallel_reduce",
    "dot": "write `a * b`, or add up in a loop",
    "where": "write `a if condition else b`",
    "item": "leave it out: an element is a number",
    "clip": "use fmin and fmax",
    "gcd": "write a @pk.function with a loop, `while b != 0:`",
    "lcm": "write a @pk.function with a loop",
    "factorial": "use tgamma(n + 1.0), or a loop",
    "comb": "use exp of a sum of lgamma(...), or a loop",
    "perm": "use exp of a difference of lgamma(...), or a loop",
    "divmod": "write `a // b` and `a % b`",
    "mean": "add up in a loop, or use parallel_reduce",
    "prod": "multiply in a loop",
    "cumsum": "use parallel_scan, or a loop",
    "sort": "do this before or after the call",
    "time": _TIME,
    "perf_counter": _TIME,
    "league_rank": _TEAM,
    "team_rank": _TEAM,
    "team_size": _TEAM,
    "team_barrier": _TEAM,
    "isinstance": "types are known before the call runs",
    "astype": "use int(...), pk.double(...) or another type",
    "zeros": _LOCAL_ARRAY,
    "ones": _LOCAL_ARRAY,
    "empty": _LOCAL_ARRAY,
    "array": _LOCAL_ARRAY,
    "View": f"make it outside, and pass it as a keyword argument; {_LOCAL_ARRAY}",
    "rand": _RANDOM,
    "random": _RANDOM,
    "uniform": _RANDOM,
    "normal": _RANDOM,
    "randint": _RANDOM,
}


_FUNCTION = ": write one outside, with @pk.function"


@lowers(ast.Call)
def call(ctx: Context, node: ast.Call) -> Expr:
    """A call whose value is used as a number."""
    result = value(ctx, node)
    if isinstance(result, Record):
        raise ctx.error(node, f"this is a {result.cls.__name__}, not a number: use its members")
    return result


def value(ctx: Context, node: ast.expr) -> Expr | Record:
    """An expression that may be an object."""
    binding = ctx.binding(node)
    if isinstance(binding, Record):
        return binding
    if not isinstance(node, ast.Call):
        return ctx.expression(node)
    name = _name(ctx, node)
    if atomics.is_atomic(name):
        return atomics.value(ctx, name, node)
    user = _user_call(ctx, node)
    if user is None and not nested.is_nested(ctx, node, name):
        return _language(ctx, node, name)
    result = nested.call(ctx, node, name) if user is None else user()
    if result is None:
        raise ctx.error(node, f"{name} returns nothing")
    return result


@lowers(ast.Attribute)
def member(ctx: Context, node: ast.Attribute) -> Expr:
    """A member of an object, or a name of a module."""
    owner = object_of(ctx, node.value)
    return attribute(ctx, node) if owner is None else member_of(ctx, node, owner)


def object_of(ctx: Context, node: ast.expr) -> Record | None:
    """The object that an expression stands for, if it is one."""
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Call)):
        return None
    if not isinstance(node, ast.Call):
        binding = ctx.binding(node)
        return binding if isinstance(binding, Record) else None
    user = _user_call(ctx, node)
    result = None if user is None else user()
    return result if isinstance(result, Record) else None


def call_statement(ctx: Context, node: ast.Call) -> None:
    """A call as a statement: its value, if any, is dropped."""
    name = _name(ctx, node)
    if atomics.is_atomic(name):
        atomics.statement(ctx, name, node)
        return
    user = _user_call(ctx, node)
    if user is not None:
        user()
        return
    if nested.is_nested(ctx, node, name):
        nested.call(ctx, node, name)
        return
    result = _language(ctx, node, name)
    while isinstance(result, Cast):
        result = result.operand
    if isinstance(result, (Call, AtomicFetch)):
        ctx.out.append(Eval(result))


def _name(ctx: Context, node: ast.Call) -> str:
    name = last_name(node.func)
    if name is None:
        raise ctx.error(node.func, f"only named functions can be called in a workunit{_FUNCTION}")
    return name


def _language(ctx: Context, node: ast.Call, name: str) -> Expr:
    if name == "extent" and isinstance(node.func, ast.Attribute):
        return _extent(ctx, node, node.func)
    if name in ("max", "min") and _is_builtin(ctx, node.func, name):
        return extreme(ctx, node, name)
    if name == "rand" and ast.unparse(node.func) not in ("np.random.rand", "numpy.random.rand"):
        return random.number(ctx, node)
    if name not in _KNOWN:
        raise _unknown(ctx, node, name)
    if node.keywords:
        raise ctx.error(node, f"{name} takes no keyword arguments")
    if name == "printf":
        return _printf(ctx, node)
    if name in _CONVERSIONS and node.args:
        ctx.tested = node.args[0] if name == "bool" else None
        _refuse_text(ctx, node, node.args[0])
    args = tuple(ctx.ordered(node.args))
    if name in FUNCTIONS:
        if isinstance(node.func, ast.Name):  # the user may define a function of this name later
            take(ctx, name, outside(ctx.function, name))
        return _maths(ctx, node, name, args)
    if name in _COMPLEX:
        return _complex(ctx, node, _COMPLEX[name], args)
    return _conversion(ctx, node, name, args)


def _conversion(ctx: Context, node: ast.Call, name: str, args: tuple[Expr, ...]) -> Expr:
    if len(args) != 1:
        raise ctx.error(node, f"{name}() takes one argument")
    value, dtype = args[0], _CONVERSIONS[name]
    if value.dtype.is_complex:
        raise ctx.error(node, f"a complex number cannot become {dtype.value}")
    if name == "float" and isinstance(node.func, ast.Name) and _is_wide(value.dtype):
        text = ast.unparse(node.args[0])
        ctx.warn(node, f"`float({text})` has 32 bits, as in C++, not 64: write pk.double({text})")
    return value if value.dtype is dtype else Cast(value, dtype, explicit=True)


def _is_wide(dtype: DType) -> bool:
    """Whether 32 bits of a float may not hold a number."""
    return dtype is DType.FLOAT64 or (dtype.is_integer and dtype.size >= 4)


def _is_builtin(ctx: Context, function: ast.expr, name: str) -> bool:
    """Whether a name is Python's function of this name, as far as the workunit can see."""
    if not isinstance(function, ast.Name):
        return False
    found = outside(ctx.function, name)
    if found is MISSING or found is getattr(builtins, name):
        take(ctx, name, found)  # the program may define a function of this name later
        return True
    return False


def _unknown(ctx: Context, node: ast.Call, name: str) -> WorkunitError:
    """The error for a function that the language does not have."""
    binding = ctx.binding(node.func) if isinstance(node.func, ast.Name) else None
    if isinstance(binding, (ViewRef, LocalArray)):
        return ctx.error(node.func, f"{name!r} is a view: index it, as in {name}[i]")
    hint = f": {_INSTEAD[name]}" if name in _INSTEAD else ""
    if not hint and (near := difflib.get_close_matches(name, FUNCTIONS, 3, 0.5)):
        hint = f": did you mean {' or '.join(map(repr, near))}?"
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if not hint or (owner is not None and isinstance(outside_object(ctx, owner)[1], ModuleType)):
        hint += f"{';' if hint[-1:] != '?' else ''} docs/maths.md lists the functions that are"
    return ctx.error(node.func, f"function {name!r} is not supported in a workunit{hint}")


def _refuse_text(ctx: Context, node: ast.Call, argument: ast.expr) -> None:
    """Refuse `float("inf")`."""
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        named = {"inf": "math.inf", "-inf": "-math.inf", "nan": "math.nan"}.get(argument.value)
        hint = f": use {named}" if named else ""
        raise ctx.error(node, f"a text cannot become a number in a workunit{hint}")


def _maths(ctx: Context, node: ast.Call, name: str, args: tuple[Expr, ...]) -> Expr:
    arity = FUNCTIONS[name].arity
    if name == "round" and len(args) == 2:
        number, digits = map(ast.unparse, node.args)
        power = f"1{'0' * int(digits)}.0" if digits.isdigit() else f"10.0 ** {digits}"
        raise ctx.error(
            node,
            f"round takes one number, and rounds to a whole one: for {digits} digits write "
            f"round({number} * {power}) / {power}",
        )
    if arity >= 0 and len(args) != arity:
        raise ctx.error(node, f"{name} takes {arity} argument(s), not {len(args)}")
    if name == "fence":
        return Call(name, (), DType.INT32)
    return convert.call(name, args)


def _complex(ctx: Context, node: ast.Call, dtype: DType, args: tuple[Expr, ...]) -> Expr:
    part = DType.FLOAT32 if dtype is DType.COMPLEX64 else DType.FLOAT64
    if len(args) == 1:
        return args[0] if args[0].dtype is dtype else Cast(args[0], dtype, explicit=True)
    if len(args) != 2:
        raise ctx.error(node, "a complex number has a real and an imaginary part")
    return Call("complex", tuple(convert.cast(arg, part) for arg in args), dtype)


def _printf(ctx: Context, node: ast.Call) -> Expr:
    """The format stays a text; numbers get C's promotions of variadic arguments."""
    first = node.args[0] if node.args else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        raise ctx.error(
            node, 'pk.printf takes a text, then the values it shows, as in pk.printf("%d\\n", i)'
        )
    args: list[Expr] = [Const(first.value, DType.INT8)]
    for argument, value in zip(node.args[1:], ctx.ordered(node.args[1:]), strict=True):
        if value.dtype.is_complex:
            raise ctx.error(argument, "pk.printf cannot print a complex number")
        promoted = integral_promotion(value.dtype)
        if promoted is DType.FLOAT32:
            promoted = DType.FLOAT64
        args.append(convert.cast(value, promoted))
    wrong = wrong_format(first.value, [arg.dtype for arg in args[1:]])
    if wrong:
        raise ctx.error(first, f"pk.printf: {wrong}")
    return Call("printf", tuple(args), DType.INT32)


def _extent(ctx: Context, node: ast.Call, method: ast.Attribute) -> Expr:
    view = indexed(ctx, method.value)
    axis = node.args[0] if len(node.args) == 1 else None
    if not isinstance(axis, ast.Constant) or type(axis.value) is not int:
        raise ctx.error(node, "extent takes one number, the axis")
    rank = 1 if isinstance(view, LocalArray) else view.rank
    if isinstance(view, LocalArray) or not 0 <= axis.value < rank:
        raise ctx.error(node, f"there is no axis {axis.value}: it has {rank} dimension(s)")
    return view.extent(axis.value)


# --------------------------------------------------------------------------- device functions


Inlined = Callable[[], "Expr | Record | None"]


def _user_call(ctx: Context, node: ast.Call) -> Inlined | None:
    """What inlines the user's function, method or constructor that a call names.

    None if the call is one of the language's own functions.
    """
    if isinstance(node.func, ast.Attribute):
        owner = object_of(ctx, node.func.value)
        if owner is not None:
            return partial(_method, ctx, node, owner, node.func.attr)
    made = class_of(ctx, node.func)
    if made is not None:
        return partial(_construct, ctx, node, *made)
    path, found = outside_object(ctx, node.func)
    plain = unwrapped(found)
    if found is MISSING or not isinstance(plain, FunctionType):
        return None
    if not _marked(found) and (_is_library(plain) or _is_workunit_of_a_known_name(plain)):
        return None
    take(ctx, path, found)
    return partial(_inline, ctx, node, ctx.path + path, plain)


def _method(ctx: Context, node: ast.Call, owner: Record, name: str) -> Expr | Record | None:
    """Call a method of an object."""
    found = getattr(owner.cls, name, MISSING)
    plain = unwrapped(found)
    if not isinstance(plain, FunctionType):
        raise ctx.error(node.func, f"{owner.cls.__name__} has no method {name!r}")
    path = f"{owner.path}.{name}"
    ctx.shared.free[path] = found
    return _inline(ctx, node, path, plain, owner)


def _construct(ctx: Context, node: ast.Call, path: str, cls: type) -> Record:
    """Make an object of a classtype."""
    record = fresh_record(ctx, node, path, cls)
    declare(ctx, record)
    _method(ctx, node, record, "__init__")
    return record


def _is_workunit_of_a_known_name(function: FunctionType) -> bool:
    """Whether it is a workunit called as the function that it uses, such as `sin`."""
    return function.__name__ in FUNCTIONS and hasattr(function, "__pyfuser__")


def _marked(value: Any) -> bool:
    return getattr(value, "__pk_function__", False) is True


def _is_library(function: FunctionType) -> bool:
    """Whether a function belongs to a library: `pk.sqrt` on the host is not what a kernel calls."""
    return (function.__module__ or "").partition(".")[0] in ("pykokkos", "pyfuser", "numpy", "math")


def _inline(
    ctx: Context,
    node: ast.Call,
    path: str,
    function: FunctionType,
    receiver: Record | None = None,
) -> Expr | Record | None:
    if node.keywords:
        given = node.keywords[0]
        raise ctx.error(
            given, f"{function.__name__} takes its arguments by position: pass {given.arg!r} so"
        )
    arguments = ctx.ordered(node.args, lambda argument: _argument(ctx, argument))
    return inline(ctx, node, path, function, arguments, receiver)


def _argument(ctx: Context, node: ast.expr) -> Argument:
    if isinstance(node, ast.Starred):
        raise ctx.unsupported(node)
    if is_slicing(node):
        assert isinstance(node, ast.Subscript)
        return subview(ctx, node)
    binding = ctx.binding(node)
    return binding if isinstance(binding, (ViewRef, Team)) else value(ctx, node)
