"""What a program means: its workunits run as plain Python over NumPy arrays, in shuffled order."""

from __future__ import annotations

import itertools
import linecache
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.fuzz.program import Call, Program

Array = np.ndarray[Any, Any]


class Rejected(Exception):
    """The program cannot be judged: it races, overflows or leaves its arrays."""


class Accumulator:
    """A reduction's running sum, which `acc += value` changes in place."""

    def __init__(self) -> None:
        self.value: Any = 0

    def __iadd__(self, value: Any) -> Accumulator:
        self.value += value
        return self

    def __float__(self) -> float:
        return float(self.value)


def _atomic_add(view: Array, index: list[int], value: Any) -> None:
    view[tuple(index)] += value


# What `pk` offers to a workunit that is run as plain Python.
_PK = SimpleNamespace(
    workunit=lambda function: function,
    atomic_add=_atomic_add,
    floor=np.floor,
    fmin=np.fmin,
    fmax=np.fmax,
)


def functions(program: Program, pk: object = _PK) -> list[Callable[..., Any]]:
    """The program's workunits over a `pk`; the lowering finds their source in `linecache`."""
    text = "from __future__ import annotations\n" + program.source().replace(
        "import pykokkos as pk\n", ""
    )
    name = "<fuzz program>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"pk": pk, "__name__": "program"}
    exec(compile(text, name, "exec"), namespace)
    return [namespace[f"work{n}"] for n in range(len(program.calls))]


def arrays(program: Program) -> dict[str, Array]:
    """The base arrays before the program: quarters in [-4, 4], or integers below 8.

    Temporaries are zero, as a new View is.
    """
    rng = np.random.default_rng(program.seed)
    result = {}
    for base in program.bases:
        if base.temporary:
            values = np.zeros(base.shape)
        elif base.dtype.startswith("float"):
            values = rng.integers(-16, 17, base.shape) / 4
        else:
            values = rng.integers(0, 8, base.shape)
        result[base.name] = values.astype(base.dtype)
    return result


def points(call: Call, seed: int) -> list[tuple[int, ...]]:
    """The iterations of a call, shuffled unless it is a scan."""
    result = list(itertools.product(*map(range, call.begin, call.end)))
    if call.pattern != "scan":
        random.Random(seed).shuffle(result)
    return result


def scalar(text: str, results: list[Any]) -> Any:
    """A scalar argument: a literal, or an earlier call's result."""
    return eval(text, {"result": results})


def run(program: Program, order: int = 0) -> tuple[dict[str, Array], list[Any]]:
    """The base arrays after the program, and each call's result (None of a parallel_for).

    Raises Rejected for what Python refuses to compute.
    """
    memory = arrays(program)
    results: list[Any] = []
    with np.errstate(all="ignore"):
        for call, function in zip(program.calls, functions(program), strict=True):
            arguments = {name: eval(text, {}, memory) for name, text in call.views}
            arguments.update((name, scalar(text, results)) for name, text in call.scalars)
            try:
                results.append(_call(call, function, arguments, order))
            except (ArithmeticError, ValueError, IndexError) as error:
                raise Rejected(f"{type(error).__name__}: {error}") from None
    for array in memory.values():
        if not np.isfinite(array).all():
            raise Rejected("not finite")
    return memory, results


def _call(call: Call, function: Callable[..., Any], arguments: dict[str, Any], order: int) -> Any:
    accumulator = Accumulator()
    leading: tuple[Any, ...] = ()
    if call.pattern != "for":
        leading = (accumulator, True) if call.pattern == "scan" else (accumulator,)
    for point in points(call, order):
        function(*point, *leading, **arguments)
    if call.pattern == "for":
        return None
    return int(accumulator.value) if call.accumulator == "int" else float(accumulator.value)
