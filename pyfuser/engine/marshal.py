"""From Python arguments to a kernel's slots, at the price of one struct.pack.

Each spec gets a function of its own, written as source and compiled once: whatever is known when
the kernel is compiled (which argument is a view, which stride is needed) costs nothing later.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from pyfuser.engine.bounds import mistake
from pyfuser.engine.faults import described, launching
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Accumulator, Param
from pyfuser.nest.abi import (
    DIVIDED,
    NO_MEMORY,
    OUTSIDE,
    REPORT_HEAD,
    ROLLING_WORDS,
    Slot,
    abi,
)
from pyfuser.nest.spec import KernelSpec, SweepSpec, loops_of
from pyfuser.support.errors import ArgumentError, DivisionError
from pyfuser.support.tracebacks import hidden
from pyfuser.trace.gate import Overtaken

Number = bool | int | float | complex
Run = Callable[..., tuple[Number, ...]]
Values = Callable[[Any], tuple[Number, ...]]
Slots = Callable[[Any, Sequence[Any]], bytes]


class Value(NamedTuple):
    """What fills slots: `text` computes it, as Python, and it has so many 8-byte words.

    kind: "threads"; "begin" or "end" of an axis of the space; "pointer" or "scalar", which belong
    to an argument; else it follows from the space and the shapes of arguments.
    """

    text: str
    words: int = 1
    kind: str = ""
    argument: int = -1
    dtype: DType = DType.INT64
    axis: int = 0


CODES = {
    DType.BOOL: "?7x",
    DType.INT8: "b7x",
    DType.INT16: "h6x",
    DType.INT32: "i4x",
    DType.INT64: "q",
    DType.UINT8: "B7x",
    DType.UINT16: "H6x",
    DType.UINT32: "I4x",
    DType.UINT64: "Q",
    DType.FLOAT32: "f4x",
    DType.FLOAT64: "d",
    DType.COMPLEX64: "ff",
    DType.COMPLEX128: "dd",
}
_RESULT_BYTES = 16


def make_run(
    spec: KernelSpec | SweepSpec, function: Any, threads: Callable[[], int]
) -> tuple[Run, Values, Slots]:
    """`run(space, arguments, ran=None)`, `values(result)` and `slots(space, arguments)`.

    Of a kernel's entry point; `slots` are what `run` would pass to it, as far as memory is there.

    Of a sweep, `space` is the steps of a wave; for each rolling view the numbers of `plan.Rolling`
    after the cluster; and for each loop its lag, how far ahead of a share's beginning it starts,
    and begin and end of its space. `arguments` are those of all loops; rolling views stay without
    memory.

    As soon as the kernel has returned, and in one step with it, `(status, result)` is appended to
    `ran` (see `Ran`): if a signal handler raises after the kernel, `run` returns no values, but
    `ran` shows that the kernel has run, and `values` what it computed. Status 0 is success. If the
    gate of `ran` is closed, the kernel does not run, and Overtaken is raised.
    """
    loops = loops_of(spec)
    accumulators = sum(len(loop.workunit.accumulators) for loop in loops)
    checked_rank = loops[0].rank if loops[0].checked else 0
    result = ctypes.c_char * (_RESULT_BYTES * accumulators)
    report = ctypes.c_int64 * (REPORT_HEAD + checked_rank)
    outputs = [*[result] * bool(accumulators), *[report] * bool(checked_rank)]
    function.argtypes = [ctypes.c_char_p, *outputs]
    function.restype = ctypes.c_int
    pack = struct.Struct("=" + _slot_codes(spec)).pack
    unpack = struct.Struct("=" + _result_codes(loops)).unpack
    namespace: dict[str, Any] = {
        "call": function,
        "launching": launching(spec.title, loops, ctypes.cast(function, ctypes.c_void_p).value),
        "pack": pack,
        "unpack": unpack,
        "threads": threads,
        "Result": result,
        "checked": lambda arguments: checked(spec, arguments),
        "allocate": lambda arguments: allocate(spec, arguments),
        "fail": lambda status, report=(): fail(spec, status, report),
        "Report": report,
        "PackError": (struct.error, OverflowError),
        "compress": compress,
        "Overtaken": Overtaken,
        "__tracebackhide__": hidden,
    }
    source = run_source(spec)
    exec(compile(source, described(spec.title, loops), "exec"), namespace)
    return namespace["run"], namespace["values"], namespace["slots"]


def _slot_codes(spec: KernelSpec | SweepSpec) -> str:
    loops = loops_of(spec)
    codes = []
    if isinstance(spec, SweepSpec):
        codes.append("q" * (2 + len(loops) + ROLLING_WORDS * len(spec.rolling)))
    for loop in loops:
        params = loop.workunit.params
        codes.append("q" * (1 + 2 * loop.rank))
        codes += [
            CODES[params[slot.param].sym.dtype] if slot.kind == "scalar" else "q"
            for slot in abi(loop)
        ]
    return "".join(codes)


def _result_codes(loops: Sequence[KernelSpec]) -> str:
    codes = []
    for accumulator in accumulators_of(loops):
        dtype = accumulator.sym.dtype
        padding = 0 if dtype is DType.COMPLEX128 else 8
        codes.append(CODES[dtype] + f"{padding}x" * bool(padding))
    return "".join(codes)


def accumulators_of(loops: Sequence[KernelSpec]) -> list[Accumulator]:
    """What gives a launch its results, in order."""
    return [accumulator for loop in loops for accumulator in loop.workunit.accumulators]


def run_source(spec: KernelSpec | SweepSpec) -> str:
    """The Python source of `run`, `values` and `slots`."""
    loops = loops_of(spec)
    params = _params(spec)
    returned = _returned(accumulators_of(loops))
    without = rolling_places(spec)
    given = _spaces(spec)
    if params:
        given.append("    " + "".join(f"a{n}, " for n in range(len(params))) + "= arguments")
    views = [n for n, (_, param) in enumerate(params) if param.rank and n not in without]
    given += [f"    m{n} = a{n}[0]" for n in views]
    packed = f"pack({', '.join(value.text for value in slot_values(spec))})"
    lines = ["def values(result):", returned]
    lines += ["def slots(space, arguments):", *given, f"    return {packed}"]
    lines += ["def run(space, arguments, ran=None):", *given]
    lines += [f"    if m{n}.root is None: allocate(arguments)" for n in views]
    lines += [
        "    try:",
        f"        slots = {packed}",
        "    except PackError:",
        "        arguments = checked(arguments)",
        "        if arguments is None: raise",
        "        return run(space, arguments, ran)",
    ]
    is_checked = loops[0].checked
    outputs = []
    if accumulators_of(loops):
        lines.append("    result = Result()")
        outputs.append("result")
    if is_checked:
        lines.append("    report = Report()")
        outputs.append("report")
    passed = ["slots", *outputs]
    lists = "".join(f", ({name},)" for name in outputs)
    kept = "result" if "result" in outputs else "None"
    lines += ["    if launching is not None: launching()"]
    lines += [
        f"    if ran is None: status = call({', '.join(passed)})",
        "    else:",  # signal handlers run between bytecodes; these iterators are C throughout
        "        before = len(ran)",
        f"        ran.extend(zip(map(call, compress((slots,), ran.gate){lists}), ({kept},)))",
        "        if len(ran) == before: raise Overtaken",
        "        status = ran[-1][0]",
    ]
    lines += [f"    if status: fail(status{', report' * is_checked})", returned]
    return "\n".join(lines) + "\n"


def rolling_places(spec: KernelSpec | SweepSpec) -> frozenset[int]:
    """The arguments, counted through all loops, that are rolling views."""
    if not isinstance(spec, SweepSpec):
        return frozenset()
    first = [0]
    for loop in spec.stages:
        first.append(first[-1] + len(loop.workunit.params))
    return frozenset(first[loop] + place for params in spec.rolling for loop, place in params)


def _spaces(spec: KernelSpec | SweepSpec) -> list[str]:
    """Take the space apart: b0_1 is where axis 1 of the first loop begins."""
    loops = loops_of(spec)
    if isinstance(spec, SweepSpec):
        views = "".join(f"v{n}, " for n in range(len(spec.rolling)))
        stages = ", ".join(f"(l{k}, h{k}, s{k}, t{k})" for k in range(len(loops)))
        lines = [f"    wave, {views}{stages} = space"]
    else:
        lines = ["    s0, t0 = space[0], space[1]"]
    for k, loop in enumerate(loops):
        for name, source in (("b", "s"), ("e", "t")):
            axes = "".join(f"{name}{k}_{axis}, " for axis in range(loop.rank))
            lines.append(f"    {axes}= {source}{k}")
    return lines


def slot_values(spec: KernelSpec | SweepSpec) -> Iterator[Value]:
    """What fills all slots, in order."""
    loops, without = loops_of(spec), rolling_places(spec)
    yield Value("threads()", kind="threads")
    if isinstance(spec, SweepSpec):
        yield Value("wave")
        yield from (Value(f"h{k}") for k in range(len(loops)))
        yield from (Value(f"*v{n}", ROLLING_WORDS) for n in range(len(spec.rolling)))
    first = 0
    for k, loop in enumerate(loops):
        if isinstance(spec, SweepSpec):
            yield Value(f"l{k}")
        yield from (Value(f"b{k}_{axis}", kind="begin", axis=axis) for axis in range(loop.rank))
        yield from (Value(f"e{k}_{axis}", kind="end", axis=axis) for axis in range(loop.rank))
        for slot in abi(loop):
            n = first + slot.param
            missing = slot.kind == "pointer" and n in without
            yield Value("0") if missing else _value(loop, slot, n)
        first += len(loop.workunit.params)


def _value(spec: KernelSpec, slot: Slot, n: int) -> Value:
    """What fills one slot, which belongs to argument number `n`."""
    sym, view = spec.workunit.params[slot.param].sym, spec.views[slot.param]
    if slot.kind == "scalar":
        text = f"a{n}.real, a{n}.imag" if sym.dtype.is_complex else f"a{n}"
        return Value(text, 1 + (sym.dtype is DType.COMPLEX128), "scalar", n, sym.dtype)
    if slot.kind == "pointer":
        return Value(f"m{n}.address + a{n}[1]", 1, "pointer", n)
    if slot.kind == "extent":
        return Value(f"a{n}[3][{slot.axis}]")
    assert view is not None
    return Value(f"a{n}[2][{slot.axis}]" + (f" // {sym.dtype.size}" if view.packed else ""))


def _returned(accumulators: Sequence[Accumulator]) -> str:
    if not accumulators:
        return "    return ()"
    if not any(a.sym.dtype.is_complex for a in accumulators):
        return "    return unpack(result)"
    names, values = [], []
    for n, a in enumerate(accumulators):
        wide = a.sym.dtype.is_complex
        names.append(f"r{n}, i{n}" if wide else f"r{n}")
        values.append(f"complex(r{n}, i{n})" if wide else f"r{n}")
    return f"    {', '.join(names)}, = unpack(result)\n    return ({', '.join(values)},)"


def _params(spec: KernelSpec | SweepSpec) -> list[tuple[str, Param]]:
    """The parameters of all loops, each with the user's name for it."""
    return [
        pair
        for loop in loops_of(spec)
        for pair in zip(loop.names_of_params(), loop.workunit.params, strict=True)
    ]


def allocate(spec: KernelSpec | SweepSpec, arguments: Sequence[Any]) -> None:
    """Allocate the memory of all views.

    Raises MemoryError, naming the first view that there is no memory for.
    """
    without = rolling_places(spec)
    for n, ((name, param), argument) in enumerate(zip(_params(spec), arguments, strict=True)):
        if param.rank and n not in without:
            try:
                argument.allocate()
            except MemoryError as error:
                raise MemoryError(f"{spec.title or 'kernel'}: argument {name!r}: {error}") from None


def checked(spec: KernelSpec | SweepSpec, arguments: Sequence[Any]) -> list[Any] | None:
    """The arguments after C's conversions, or None where none was needed.

    Raises OverflowError for an integer outside its parameter's range and ArgumentError for what is
    no number of its kind.
    """
    result = list(arguments)
    changed = False
    for n, (name, param) in enumerate(_params(spec)):
        if param.rank:
            continue
        value, dtype = arguments[n], param.sym.dtype
        try:
            struct.pack("=" + CODES[dtype], *_parts(value, dtype))
        except (struct.error, OverflowError, AttributeError):
            result[n] = _converted(name, value, dtype)
            changed = True
    return result if changed else None


def _parts(value: Any, dtype: DType) -> tuple[Any, ...]:
    return (value.real, value.imag) if dtype.is_complex else (value,)


def _converted(name: str, value: Any, dtype: DType) -> Number:
    if dtype.is_integer:
        try:
            whole = value.__index__()
        except AttributeError:
            raise ArgumentError(
                f"argument {name!r}: expected an integer ({dtype.value}), got {value!r}"
            ) from None
        low, high = dtype.range()
        raise OverflowError(
            f"argument {name!r}: {whole} does not fit {dtype.value} ({low} to {high})"
        )
    try:
        with np.errstate(over="ignore"):
            converted: Number = dtype.numpy.type(value).item()
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(
            f"argument {name!r}: expected a number ({dtype.value}), got {value!r}"
        ) from None
    return converted


def fail(spec: KernelSpec | SweepSpec, status: int, report: Sequence[int] = ()) -> None:
    """Raise what a kernel's return value stands for."""
    title = spec.title or "kernel"
    if status == OUTSIDE:
        raise mistake(loops_of(spec)[0], report)
    if status == DIVIDED:
        raise DivisionError(f"{title}: an integer was divided by 0")
    if status == NO_MEMORY:
        raise MemoryError(f"{title}: no memory for its working space")
    name, param = _params(spec)[status - 1]
    dtype = param.sym.dtype
    raise ArgumentError(
        f"{title}: argument {name!r} does not start at a multiple of {dtype.size} bytes, as "
        f"{dtype.value} must; pass a copy of it"
    )
