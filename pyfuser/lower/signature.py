"""A workunit's parameters: which belong to the policy, and what the annotations say of the rest."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import FunctionType, MappingProxyType
from typing import Any

from pyfuser.ir.dtypes import DType
from pyfuser.lower.annotation import Annotation, parse
from pyfuser.lower.free import resolve
from pyfuser.lower.records import is_classtype
from pyfuser.lower.source import FunctionSource, source_of, unwrap
from pyfuser.lower.types import BoundType, RandomPoolType, ScalarType, ViewType
from pyfuser.support.caches import CodeTable
from pyfuser.support.errors import ArgumentError, close, quoted
from pyfuser.support.records import dataclass
from pyfuser.support.units import count

_INDICES = ("j", "k")
_POLICY_EXTRA = {"for": 0, "reduce": 1, "scan": 2}


@dataclass(frozen=True)
class Signature:
    """The parameters of a workunit in order, with the meaning of their annotations.

    defaults: the source of values that parameters have by default, which only messages mention.
    """

    source: FunctionSource
    names: tuple[str, ...]
    annotations: Mapping[str, Annotation]
    defaults: Mapping[str, str]

    def policy_count(self, pattern: str, rank: int) -> int:
        """How many leading parameters the pattern fills: `rank` indices, accumulator, last pass."""
        return rank + _POLICY_EXTRA[pattern]

    def policy_names(self, pattern: str, rank: int) -> tuple[str, ...]:
        """The leading parameters, which the policy fills.

        Raises WorkunitError where the function has too few.
        """
        wanted = self.policy_count(pattern, rank)
        if len(self.names) < wanted:
            raise self.source.error(
                self.source.node,
                f"a workunit of parallel_{pattern} over {count(rank, 'dimension')} needs "
                f"{_described(pattern, rank)} as first parameters, "
                f"but {self.source.name!r} has only {count(len(self.names), 'parameter')}",
            )
        return self.names[:wanted]

    def argument_names(self, pattern: str, rank: int) -> tuple[str, ...]:
        """The parameters that a call binds, in order."""
        return self.names[self.policy_count(pattern, rank) :]

    def of_method(self) -> Signature:
        """The signature without the first parameter, which is the object."""
        return replace(self, names=self.names[1:])

    def bind(
        self,
        pattern: str,
        rank: int,
        types: Mapping[str, BoundType],
        outer: Mapping[str, Annotation | None] = MappingProxyType({}),
    ) -> dict[str, BoundType]:
        """The types of the bound parameters: an annotation's where there is one.

        outer: further names that `types` binds, which are no parameters (members of objects), and
        their annotations.

        Raises ArgumentError where names or types do not fit.
        """
        self.policy_names(pattern, rank)
        names = self.argument_names(pattern, rank)
        for name in types:
            if name not in names and name not in outer:
                raise self._misfit(None, self._unknown(name, pattern, rank))
        missing = [name for name in names if name not in types]
        if missing:
            hint = self._hint_of_missing(missing, pattern, rank)
            noun = "argument" if len(missing) == 1 else "arguments"
            raise self._misfit(missing[0], f"missing {noun} {_listed(missing)}{hint}")
        known = dict(outer) | {name: self.annotations.get(name) for name in names}
        real = real_type(types, known)
        return {
            name: self._resolve(name, types[name], annotation and annotation.with_real(real))
            for name, annotation in known.items()
        }

    def _unknown(self, name: str, pattern: str, rank: int) -> str:
        """What is wrong with an argument that no parameter is left for."""
        filled = self.policy_names(pattern, rank)
        if name not in filled:
            names = self.argument_names(pattern, rank)
            meant = close(name, names)
            if pattern != "for" and name.startswith("init"):
                return f"unknown argument {name!r}: accumulators start at 0; add it to the result"
            takes = f"{' It' if meant else '; it'} takes {_listed(names)}"
            return f"unknown argument {name!r}{meant}{takes}"
        roles = ["an index"] * rank + ["the accumulator", "the bool of the last pass"]
        place = filled.index(name)
        hint = ""
        first = parameters(self.source.node)[0].arg
        if first not in ("self", self.names[0]):
            definition = f"`def {self.source.name}(self, {first}, ...)`"
            hint = f"; a method has its object before them: {definition}"
        elif place == rank:
            hint = (
                f"; leave it out of the call if it is the accumulator, whose value the call "
                f"returns; else write one before {name!r}, such as `acc: pk.Acc[pk.double]`"
            )
        return (
            f"parallel_{pattern} itself fills {name!r}, as {roles[place]}: the first "
            f"parameters of its workunits are {_described(pattern, rank)}{hint}"
        )

    def _hint_of_missing(self, missing: Sequence[str], pattern: str, rank: int) -> str:
        name = missing[0]
        annotation = self.annotations.get(name)
        is_accumulator = annotation is not None and annotation.kind == "accumulator"
        if pattern == "for" and (is_accumulator or name.startswith("acc")):
            return "; a workunit with an accumulator is for parallel_reduce or parallel_scan"
        if pattern == "for" and name in _INDICES and name == self.argument_names("for", rank)[0]:
            return "; several indices are those of a pk.MDRangePolicy([0, 0], [n, m])"
        if self.names[0] == "self" and not is_accumulator:
            return "; a method is called of an object, as in simulation.step"
        first = self.argument_names(pattern, rank)[0]
        if pattern == "reduce" and name == first and self._adds_to(name):
            return "; a parallel_reduce has one accumulator: two sums are two calls"
        defaults = [f"{n}={self.defaults[n]}" for n in missing if n in self.defaults]
        if defaults:
            return f"; default arguments are not supported: pass {', '.join(defaults)}"
        return ""

    def _adds_to(self, name: str) -> bool:
        return any(
            isinstance(node, ast.AugAssign) and getattr(node.target, "id", None) == name
            for node in ast.walk(self.source.node)
        )

    def _resolve(self, name: str, given: BoundType, annotation: Annotation | None) -> BoundType:
        if annotation is None or annotation.kind == "auto":
            return given
        if annotation.kind == "random" and isinstance(given, RandomPoolType):
            return given
        dtype = annotation.dtype
        if annotation.kind == "view" and isinstance(given, ViewType):
            if given.rank == annotation.rank and dtype in (None, given.dtype):
                return given
            expected = dtype.value if dtype else "any type"
            wanted = f"a {annotation.rank}-D view of {expected}"
        elif annotation.kind == "scalar" and isinstance(given, ScalarType):
            assert dtype is not None
            if not _loses_kind(given.dtype, dtype):
                return ScalarType(dtype)
            wanted = f"a scalar of type {dtype.value}"
        else:
            wanted = {"view": "a view", "scalar": "a scalar"}.get(annotation.kind, "something else")
        raise self._misfit(name, f"argument {name!r} is annotated as {wanted} but is {given}")

    def _misfit(self, name: str | None, message: str) -> ArgumentError:
        """The error, with the parameter it is about, or the definition, on lines of its own."""
        found = [node for node in parameters(self.source.node) if node.arg == name]
        place = self.source.location(found[0] if found else self.source.node)
        what = f"parameter {name!r}" if found else "the workunit"
        return ArgumentError(
            f"workunit {self.source.name!r}: {message}\n  {what} is at {place}{quoted(place)}"
        )


def real_type(
    types: Mapping[str, BoundType], annotations: Mapping[str, Annotation | None]
) -> DType:
    """What `pk.real` stands for: the type of the first View that is annotated so, else a double."""
    for name, annotation in annotations.items():
        given = types[name]
        if annotation is not None and annotation.real and isinstance(given, ViewType):
            return given.dtype
    return DType.FLOAT64


def _loses_kind(given: DType, wanted: DType) -> bool:
    """Whether a conversion would drop a fraction or an imaginary part; the call is refused then."""
    if given.is_complex:
        return not wanted.is_complex
    return given.is_float and wanted.is_integer


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names)) or "none"


def _described(pattern: str, rank: int) -> str:
    parts = [f"{rank} {'index' if rank == 1 else 'indices'}"]
    if pattern != "for":
        parts.append("an accumulator")
    if pattern == "scan":
        parts.append("a bool for the last pass")
    return ", ".join(parts)


_SIGNATURES: CodeTable[Signature] = CodeTable("signatures of workunits")


def signature(function: Callable[..., Any]) -> Signature:
    """The signature of a workunit; found once for each code object.

    Raises WorkunitError for what cannot be a workunit.
    """
    plain = unwrap(function)
    code = plain.__code__
    known = _SIGNATURES.of(code)
    return known if known is not None else _SIGNATURES.keep(code, _read(plain, source_of(plain)))


def _read(function: FunctionType, source: FunctionSource) -> Signature:
    arguments = source.node.args
    extra = arguments.vararg or arguments.kwarg
    if extra is not None:
        raise source.error(extra, "*args and **kwargs are not supported in a workunit: name them")
    nodes = parameters(source.node)
    annotations = {}
    for node in nodes:
        if node.annotation is not None:
            annotations[node.arg] = _annotation(function, source, node, node.annotation)
    return Signature(source, tuple(node.arg for node in nodes), annotations, _defaults(arguments))


def parameters(definition: ast.FunctionDef) -> list[ast.arg]:
    """The parameters of a definition in order."""
    arguments = definition.args
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _defaults(arguments: ast.arguments) -> dict[str, str]:
    """The source of each default."""
    last = [*arguments.posonlyargs, *arguments.args][::-1]
    pairs = [*zip(last, arguments.defaults[::-1], strict=False)][::-1]
    pairs += [
        (node, value)
        for node, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if value is not None
    ]
    return {node.arg: ast.unparse(value) for node, value in pairs}


def _is_class(function: FunctionType, annotation: ast.expr) -> bool:
    constant = isinstance(annotation, ast.Constant)
    path = str(annotation.value) if constant else ast.unparse(annotation)  # type: ignore[attr-defined]
    return is_classtype(resolve(function, path, {}))


def annotation_of(function: FunctionType, annotation: ast.expr) -> Annotation | None:
    """What the annotation of a parameter means; None if the language has no such type."""
    parsed = parse(annotation)
    if parsed is None and _is_class(function, annotation):
        return Annotation("object")
    return None if parsed is None or parsed.kind == "list" else parsed


def _annotation(
    function: FunctionType, source: FunctionSource, node: ast.arg, annotation: ast.expr
) -> Annotation:
    parsed = annotation_of(function, annotation)
    if parsed is None:
        raise source.error(
            annotation,
            f"{ast.unparse(annotation)!r} is no type of the language for {node.arg!r}: use int, "
            "float, bool, pk.int64, pk.View1D[pk.double], pk.Acc[pk.double], ...",
        )
    return parsed
