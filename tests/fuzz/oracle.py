"""What a program means: its workunits run as plain Python over NumPy arrays, in shuffled order."""

from __future__ import annotations

import ast
import itertools
import linecache
import random
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, SimpleNamespace
from typing import Any

import numpy as np

from tests.fuzz import cxx
from tests.fuzz.program import Base, Call, Host, Program
from tests.fuzz.typed import typed

Array = np.ndarray[Any, Any]
#: The base arrays, and by step: a reduction's result, a tuple of what the host read, or None.
State = tuple[dict[str, Array], list[Any]]


_SPECIAL = 4  # one inexact program in so many has infinities


class Rejected(Exception):
    """The program cannot be judged: it races, overflows or leaves its arrays."""


class Accumulator:
    """A reduction's running sum, which `acc += value` and `acc -= value` change in place."""

    def __init__(self) -> None:
        self.value: Any = 0

    def __iadd__(self, value: Any) -> Accumulator:
        self.value += value
        return self

    def __isub__(self, value: Any) -> Accumulator:
        self.value -= value
        return self

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)


def _atomic_add(view: Array, index: list[int], value: Any) -> None:
    view[tuple(index)] += value


# What `pk` offers to a workunit that is run as plain Python.
_PK = SimpleNamespace(
    workunit=lambda function: function,
    atomic_add=_atomic_add,
    double=float,
    floor=np.floor,
    # NumPy's depend on its version where 0.0 meets -0.0.
    fmin=lambda x, y: x if y != y or x < y else y,
    fmax=lambda x, y: x if y != y or x > y else y,
)


_CXX_PK = cxx.pk(_PK)


def functions(
    program: Program, pk: object = _PK, as_meant: bool = False
) -> list[Callable[..., Any]]:
    """The workunit of each call over a `pk`; the lowering finds their source in `linecache`.

    as_meant: to run them; what is compiled is then not quite that source.
    """
    text = "from __future__ import annotations\n" + program.source().replace(
        "import pykokkos as pk\n", ""
    )
    name = f"<fuzz program {program.seed % 8}>"  # threads run different ones at once
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"pk": pk, "__name__": "program"}
    exec((_compiled_with_roots if as_meant else _compiled)(text, name), namespace)
    return [namespace[f"work{n}"] for n in program.units]


@lru_cache(maxsize=2)
def _compiled(text: str, name: str) -> CodeType:
    return compile(text, name, "exec", dont_inherit=True)


@lru_cache(maxsize=2)
def _compiled_with_roots(text: str, name: str) -> CodeType:
    tree = ast.fix_missing_locations(_Roots().visit(ast.parse(text, name)))
    return compile(tree, name, "exec", dont_inherit=True)


class _Roots(ast.NodeTransformer):
    """`x ** 0.5` is a square root, rounded once; C's pow is 1.0 for the double before 1.0."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        half = isinstance(node.right, ast.Constant) and node.right.value == 0.5
        if not (isinstance(node.op, ast.Pow) and half):
            return node
        root = ast.parse("math.sqrt", mode="eval").body
        return ast.copy_location(ast.Call(root, [node.left], []), node)


def has_words(program: Program) -> bool:
    """Whether the program's integers are those of `cxx`: it has unsigned or narrow elements."""
    return any(base.dtype in cxx.WORDS for base in program.bases)


def _typed_functions(program: Program) -> list[Callable[..., Any]]:
    """The workunit of each call, computing with the integers of `cxx`."""
    text = "from __future__ import annotations\n" + program.source()
    namespace: dict[str, Any] = {**cxx.NAMES, "pk": _CXX_PK}
    exec(_compiled(typed(text).replace("import pykokkos as pk\n", ""), "<typed>"), namespace)
    return [namespace[f"work{n}"] for n in program.units]


def arrays(program: Program) -> dict[str, Array]:
    """The base arrays before the program: quarters in [-4, 4], integers below 8, or bools.

    Words (see `cxx`) are any of their type.

    Temporaries are zero, as a new View is. In inexact programs floats are any in [-4, 4], and in
    some of these programs a few are infinite, no numbers, or too small to be normal.
    """
    initial = _initial(program.bases, program.seed, program.inexact)
    return {base.name: array.copy() for base, array in zip(program.bases, initial, strict=True)}


@lru_cache(maxsize=2)
def _initial(bases: tuple[Base, ...], seed: int, inexact: bool) -> tuple[Array, ...]:
    rng = np.random.default_rng(seed)
    result = []
    for base in bases:
        if base.temporary:
            values = np.zeros(base.shape)
        elif base.dtype.startswith("float") and inexact:
            values = _any_floats(rng, base.shape, 0.02 if seed % _SPECIAL == 0 else 0.0)
        elif base.dtype.startswith("float"):
            values = rng.integers(-16, 17, base.shape) / 4
        elif base.dtype in cxx.WORDS:
            values = _any_words(rng, base)
        elif base.dtype.startswith("complex"):
            values = rng.integers(-8, 9, base.shape) + 0.25j * rng.integers(-8, 9, base.shape)
        else:
            values = rng.integers(0, 2 if base.dtype == "bool" else 8, base.shape)
        result.append(values.astype(base.dtype))
    return tuple(result)


def _any_words(rng: np.random.Generator, base: Base) -> Array:
    """Numbers below 16, any of the type, and its least and greatest ones."""
    limits = np.iinfo(base.dtype)
    wide = rng.integers(limits.min, limits.max, base.shape, base.dtype, endpoint=True)
    ends = rng.choice(np.array([limits.min, limits.max], base.dtype), base.shape)
    kind = rng.random(base.shape)
    small = rng.integers(0, 16, base.shape).astype(base.dtype)
    return np.where(kind < 0.5, small, np.where(kind < 0.9, wide, ends))


def _any_floats(rng: np.random.Generator, shape: tuple[int, ...], special: float) -> Array:
    few = rng.choice([np.nan, np.inf, -np.inf, -0.0, 1e-310, -1e-42], shape)
    return np.where(rng.random(shape) < special, few, rng.uniform(-4, 4, shape))


def points(call: Call, end: tuple[int, ...], seed: int) -> list[tuple[int, ...]]:
    """The iterations of a call, shuffled unless it is a scan."""
    result = list(itertools.product(*map(range, call.begin, end)))
    if call.pattern != "scan":
        random.Random(seed).shuffle(result)
    return result


@lru_cache(maxsize=4096)
def _code(text: str, mode: str) -> CodeType:
    return compile(text, "<fuzz host>", mode)


def part(text: str, memory: dict[str, Any]) -> Any:
    """A view argument: a part of a base array."""
    if text in memory:
        return memory[text]
    return eval(_code(text, "eval"), {"np": np, "as_strided": np.lib.stride_tricks.as_strided},
                memory)  # fmt: skip


def scalar(text: str, results: list[Any]) -> Any:
    """A scalar argument: a literal, or an earlier call's result."""
    return eval(_code(text, "eval"), {"result": results, "np": np})


def act(
    step: Host,
    memory: dict[str, Any],
    results: list[Any],
    resize: Callable[[Any, int], Any] | None = None,
) -> tuple[Any, ...]:
    """Run a statement of the host; gives what it read."""
    seen: list[complex] = []  # any number that is used here is one exactly
    names = {
        "np": np,
        "result": results,
        "read": lambda value: seen.append(complex(value)),
        "resize": resize or resized,
    }
    exec(_code(step.text, "exec"), names, memory)
    return tuple(seen)


def resized(array: Array, extent: int) -> Array:
    """The array with another length; new elements are zero."""
    result = np.zeros((extent, *array.shape[1:]), array.dtype)
    common = min(extent, len(array))
    result[:common] = array[:common]
    return result


def run(program: Program, order: int = 0) -> State:
    """The base arrays after the program, and each step's result (see `State`).

    Raises Rejected for what Python refuses to compute.
    """
    memory = arrays(program)
    results: list[Any] = []
    words = has_words(program)
    workunits = iter(_typed_functions(program) if words else functions(program, as_meant=True))
    with np.errstate(all="ignore"):
        for step in program.steps:
            try:
                if isinstance(step, Host):
                    results.append(act(step, memory, results))
                    continue
                arguments = {name: part(text, memory) for name, text in step.views}
                arguments.update((name, scalar(text, results)) for name, text in step.scalars)
                end = step.stop(results)
                if words:
                    arguments = {name: _typed(value) for name, value in arguments.items()}
                results.append(_call(step, end, next(workunits), arguments, order, words))
            except (ArithmeticError, ValueError, IndexError) as error:
                raise Rejected(f"{type(error).__name__}: {error}") from None
    for array in memory.values():
        if not np.isfinite(array).all():
            raise Rejected("not finite")
    return memory, results


def _call(
    call: Call,
    end: tuple[int, ...],
    function: Callable[..., Any],
    arguments: dict[str, Any],
    order: int,
    words: bool,
) -> Any:
    kind = "int32" if call.accumulator == "int" else call.accumulator.removeprefix("pk.")
    accumulator: Any = cxx.Sum(kind) if words else Accumulator()
    leading: tuple[Any, ...] = ()
    if call.pattern != "for":
        leading = (accumulator, True) if call.pattern == "scan" else (accumulator,)
    for point in points(call, end, order):
        function(*(map(_typed, point) if words else point), *leading, **arguments)
    if call.pattern == "for":
        return None
    return int(accumulator) if "int" in kind else float(accumulator)


def _typed(value: Any) -> Any:
    """An argument of a call whose integers are those of `cxx`."""
    if isinstance(value, np.ndarray):
        return cxx.Elements(value) if value.dtype.kind in "biu" else value
    return cxx.number(value)
