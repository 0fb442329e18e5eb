"""Objects of the user's classes: functors and workloads (`self` of a workunit), and classtypes.

ir has no objects: a functor's members are arguments of the call, a classtype's are locals, one for
each field. Copies copy all fields; functions get objects by reference, as PyKokkos passes them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from pyfuser.ir.canonical import fresh
from pyfuser.ir.nodes import Assign, Declare, Read, Sym
from pyfuser.lower.annotation import Annotation, last_name, parse
from pyfuser.lower.context import Binding, Context, Record, Variable
from pyfuser.lower.free import MISSING, outside, unwrapped
from pyfuser.lower.names import outside_object, take
from pyfuser.lower.source import source_of
from pyfuser.lower.types import CLASSTYPE
from pyfuser.support.errors import WorkunitError


def is_classtype(value: Any) -> bool:
    """Whether a value is a class that workunits may make objects of."""
    return isinstance(value, type) and CLASSTYPE in vars(value)


def class_of(ctx: Context, node: ast.expr | None) -> tuple[str, type] | None:
    """The path and the class that an expression or annotation names, if it is a classtype."""
    if node is None:
        return None
    path, value = outside_object(ctx, node)
    if not is_classtype(value):
        return None
    take(ctx, path, value)
    return ctx.path + path, value


# --------------------------------------------------------------------------- members


def members(function: FunctionType, name: str, cls: type) -> tuple[str, ...]:
    """The members of the object called `name` that a function uses, also in methods it calls.

    Methods are not among them. A member that the constructor declares may be used by its bare name,
    as in C++. Raises WorkunitError where a source cannot be found.
    """
    found: dict[str, None] = {}
    _collect(function, name, cls, found, set())
    return tuple(found)


def _collect(
    function: FunctionType, name: str, cls: type, found: dict[str, None], seen: set[Any]
) -> None:
    if function.__code__ in seen:
        return
    seen.add(function.__code__)
    tree = source_of(function).node
    found.update(dict.fromkeys(sorted(_bare_names(tree) & declared(cls).keys())))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and last_name(node.func) == "rand":
            types = declared_types(cls)
            found.update(dict.fromkeys([n for n, t in types.items() if t.kind == "random"][:1]))
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        if node.value.id != name:
            continue
        value = unwrapped(getattr(cls, node.attr, MISSING))
        if not isinstance(value, FunctionType):
            found[node.attr] = None
        elif value.__code__.co_argcount:
            _collect(value, value.__code__.co_varnames[0], cls, found, seen)


def _bare_names(tree: ast.FunctionDef) -> set[str]:
    """The names that a function reads and neither assigns, nor has as parameters."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    own |= {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    return {node.id for node in names} - own


def declared(cls: type) -> dict[str, tuple[FunctionType, ast.expr]]:
    """The members that constructors declare, `self.x: T = ...`: the constructor, and `T`."""
    found: dict[str, tuple[FunctionType, ast.expr]] = {}
    for base in reversed(cls.__mro__):
        constructor = vars(base).get("__init__")
        if not isinstance(constructor, FunctionType):
            continue
        try:
            source = source_of(constructor)
        except WorkunitError:  # made by a library: it declares nothing
            continue
        receiver = source.node.args.args[0].arg if source.node.args.args else ""
        for node in ast.walk(source.node):
            if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute)):
                continue
            if getattr(node.target.value, "id", None) == receiver:
                found[node.target.attr] = constructor, node.annotation
    return found


def declared_types(cls: type) -> dict[str, Annotation]:
    """What the constructors say about the types of members."""
    parsed = {name: parse(node) for name, (_, node) in declared(cls).items()}
    return {name: annotation for name, annotation in parsed.items() if annotation is not None}


# --------------------------------------------------------------------------- classtypes


def fresh_record(ctx: Context, node: ast.AST, path: str, cls: type) -> Record:
    """An object with new locals as fields; they are not declared yet."""
    fields: dict[str, Binding] = {}
    for name, (constructor, annotation) in declared(cls).items():
        parsed = parse(annotation)
        if parsed is not None and parsed.kind == "scalar" and parsed.dtype is not None:
            dtype = parsed.with_real(ctx.shared.real).dtype or parsed.dtype
            fields[name] = Variable(fresh(name, dtype), "local")
            continue
        inner = outside(constructor, getattr(annotation, "id", ""))
        if not is_classtype(inner) or inner is cls:
            raise ctx.error(
                node, f"member {name!r} of {cls.__name__} must be a number or a classtype's object"
            )
        inner_path = f"{path}.__init__().{inner.__name__}"
        ctx.shared.free[f"{path}.__init__"] = vars(cls)["__init__"]
        ctx.shared.free[inner_path] = inner
        fields[name] = fresh_record(ctx, node, inner_path, inner)
    if not fields:
        raise ctx.error(
            node,
            f"{cls.__name__} has no members: its constructor declares them, as in "
            "self.x: float = x",
        )
    return Record(cls, path, fields)


def locals_of(record: Record) -> Iterator[Sym]:
    """The locals that hold an object."""
    for field in record.fields.values():
        if isinstance(field, Record):
            yield from locals_of(field)
        elif isinstance(field, Variable):
            yield field.sym


def declare(ctx: Context, record: Record) -> None:
    """Declare the locals of an object."""
    ctx.out.extend(Declare(sym, None) for sym in locals_of(record))


def assign(ctx: Context, node: ast.AST, target: Record, value: Record) -> None:
    """`target = value`: every field is copied."""
    if target.cls is not value.cls:
        raise ctx.error(
            node, f"this is a {value.cls.__name__}, where a {target.cls.__name__} is wanted"
        )
    places = list(locals_of(target))
    if set(places) & set(locals_of(value)):
        return  # the object itself
    ctx.out.extend(
        Assign(place, Read(sym)) for place, sym in zip(places, locals_of(value), strict=True)
    )


def copy(ctx: Context, node: ast.AST, value: Record) -> Record:
    """A new object with the same values."""
    record = fresh_record(ctx, node, value.path, value.cls)
    for place, sym in zip(locals_of(record), locals_of(value), strict=True):
        ctx.out.append(Declare(place, Read(sym)))
    return record
