"""From Python arguments to a kernel's slots, at the price of one struct.pack.

Each spec gets a function of its own, written as source and compiled once: whatever is known when
the kernel is compiled (which argument is a view, which stride is needed) costs nothing later.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyfuser.codegen.cpp import NO_MEMORY, OUTSIDE, Slot, abi
from pyfuser.codegen.cpp_bounds import REPORT_HEAD
from pyfuser.codegen.spec import KernelSpec
from pyfuser.engine.bounds import bounds_error
from pyfuser.errors import ArgumentError
from pyfuser.ir.dtypes import DType

Number = bool | int | float | complex
Run = Callable[..., tuple[Number, ...]]
Values = Callable[[Any], tuple[Number, ...]]

_CODES = {
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


def make_run(spec: KernelSpec, function: Any, threads: Callable[[], int]) -> tuple[Run, Values]:
    """`run(space, arguments, ran=None)` and `values(result)` for a kernel's entry point.

    As soon as the kernel has returned, and in one step with it, `(status, result)` is appended to
    the list `ran`: if a signal handler raises after the kernel, `run` returns no values, but `ran`
    tells that the kernel has run, and `values` what it computed. Status 0 is success.
    """
    slots = abi(spec)
    accumulators = len(spec.workunit.accumulators)
    result = ctypes.c_char * (_RESULT_BYTES * accumulators)
    report = ctypes.c_int64 * (REPORT_HEAD + spec.rank)
    function.argtypes = [ctypes.c_char_p, *[result] * bool(accumulators), *[report] * spec.checked]
    function.restype = ctypes.c_int
    pack = struct.Struct("=" + _slot_codes(spec, slots)).pack
    unpack = struct.Struct("=" + _result_codes(spec)).unpack
    namespace: dict[str, Any] = {
        "call": function,
        "pack": pack,
        "unpack": unpack,
        "threads": threads,
        "Result": result,
        "checked": lambda arguments: checked(spec, arguments),
        "allocate": lambda arguments: allocate(spec, arguments),
        "fail": lambda status, report=(): fail(spec, status, report),
        "Report": report,
        "PackError": (struct.error, OverflowError),
    }
    source = run_source(spec, slots)
    exec(compile(source, f"<launch of {spec.title or 'kernel'}>", "exec"), namespace)
    return namespace["run"], namespace["values"]


def _slot_codes(spec: KernelSpec, slots: Sequence[Slot]) -> str:
    params = spec.workunit.params
    codes = ["q" * (1 + 2 * spec.rank)]
    codes += [_CODES[params[s.param].sym.dtype] if s.kind == "scalar" else "q" for s in slots]
    return "".join(codes)


def _result_codes(spec: KernelSpec) -> str:
    codes = []
    for accumulator in spec.workunit.accumulators:
        dtype = accumulator.sym.dtype
        padding = 0 if dtype is DType.COMPLEX128 else 8
        codes.append(_CODES[dtype] + f"{padding}x" * bool(padding))
    return "".join(codes)


def run_source(spec: KernelSpec, slots: Sequence[Slot]) -> str:
    """The Python source of `run` and `values`."""
    rank, params = spec.rank, spec.workunit.params
    first = "".join(f"b{axis}, " for axis in range(rank))
    last = "".join(f"e{axis}, " for axis in range(rank))
    names = "".join(f"a{n}, " for n in range(len(params)))
    lines = ["def values(result):", _returned(spec), "def run(space, arguments, ran=None):"]
    lines += [f"    {first}= space[0]", f"    {last}= space[1]"]
    if params:
        lines.append(f"    {names}= arguments")
    for n, param in enumerate(params):
        if param.rank:
            lines += [
                f"    m{n} = a{n}[0]",
                f"    if m{n}.root is None: allocate(arguments)",
            ]
    values = ", ".join(["threads()", first[:-2], last[:-2], *(_value(spec, s) for s in slots)])
    lines += [
        "    try:",
        f"        slots = pack({values})",
        "    except PackError:",
        "        arguments = checked(arguments)",
        "        if arguments is None: raise",
        "        return run(space, arguments, ran)",
    ]
    outputs = []
    if spec.workunit.accumulators:
        lines.append("    result = Result()")
        outputs.append("result")
    if spec.checked:
        lines.append("    report = Report()")
        outputs.append("report")
    passed = ["slots", *outputs]
    lists = ", ".join(f"({name},)" for name in passed)
    kept = "result" if spec.workunit.accumulators else "None"
    lines += [
        f"    if ran is None: status = call({', '.join(passed)})",
        "    else:",  # signal handlers run between bytecodes; these iterators are C throughout
        f"        ran.extend(zip(map(call, {lists}), ({kept},)))",
        "        status = ran[-1][0]",
    ]
    lines += [f"    if status: fail(status{', report' * spec.checked})", _returned(spec)]
    return "\n".join(lines) + "\n"


def _value(spec: KernelSpec, slot: Slot) -> str:
    """The Python expression for one slot."""
    n = slot.param
    sym, view = spec.workunit.params[n].sym, spec.views[n]
    if slot.kind == "scalar":
        return f"a{n}.real, a{n}.imag" if sym.dtype.is_complex else f"a{n}"
    if slot.kind == "pointer":
        return f"m{n}.address + a{n}[1]"
    if slot.kind == "extent":
        return f"a{n}[3][{slot.axis}]"
    assert view is not None
    return f"a{n}[2][{slot.axis}]" + (f" // {sym.dtype.size}" if view.packed else "")


def _returned(spec: KernelSpec) -> str:
    accumulators = spec.workunit.accumulators
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


def allocate(spec: KernelSpec, arguments: Sequence[Any]) -> None:
    """Allocate the memory of all views.

    Raises MemoryError, naming the first view that there is no memory for.
    """
    for name, param, argument in zip(
        spec.names_of_params(), spec.workunit.params, arguments, strict=True
    ):
        if param.rank:
            try:
                argument.allocate()
            except MemoryError as error:
                raise MemoryError(f"{spec.title or 'kernel'}: argument {name!r}: {error}") from None


def checked(spec: KernelSpec, arguments: Sequence[Any]) -> list[Any] | None:
    """The arguments after C's conversions, or None where none was needed.

    Raises OverflowError for an integer outside its parameter's range and ArgumentError for what is
    no number of its kind.
    """
    result = list(arguments)
    changed = False
    for n, param in enumerate(spec.workunit.params):
        if param.rank:
            continue
        value, dtype = arguments[n], param.sym.dtype
        try:
            struct.pack("=" + _CODES[dtype], *_parts(value, dtype))
        except (struct.error, OverflowError, AttributeError):
            result[n] = _converted(spec.names_of_params()[n], value, dtype)
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


def fail(spec: KernelSpec, status: int, report: Sequence[int] = ()) -> None:
    """Raise what a kernel's return value stands for."""
    title = spec.title or "kernel"
    if status == OUTSIDE:
        raise bounds_error(spec, report)
    if status == NO_MEMORY:
        raise MemoryError(f"{title}: no memory for the partial results of a reduction")
    name = spec.names_of_params()[status - 1]
    dtype = spec.workunit.params[status - 1].sym.dtype
    raise ArgumentError(
        f"{title}: argument {name!r} does not start at a multiple of {dtype.size} bytes, as "
        f"{dtype.value} must; pass a copy of it"
    )
