"""From Python arguments to the parameters of a GPU kernel, at the price of one struct.pack.

As in `engine.marshal`, each spec gets a function of its own, written as source and compiled once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pyfuser.codegen.gpu.unit import Argument, GpuKernel
from pyfuser.engine.gpu.device import Device
from pyfuser.engine.gpu.results import Number, located
from pyfuser.engine.marshal import CODES, checked
from pyfuser.ir.dtypes import DType
from pyfuser.nest.spec import KernelSpec
from pyfuser.trace.images import changed_on_device, to_device
from pyfuser.trace.memory import Region

Pack = Callable[..., bytes]


def make_pack(spec: KernelSpec, kernel: GpuKernel) -> tuple[Pack, tuple[int, ...]]:
    """`pack(space, arguments, stream, device, workspace, results)` and each parameter's offset.

    The bytes hold all parameters. Views are on the device afterwards, for use on its current
    stream, and what the kernel writes counts as changed: the launch has to follow. `workspace` and
    `results` are addresses. An argument may be a `Number` in place of a float.
    """
    codes = [CODES[a.dtype] if a.kind == "scalar" else "q" for a in kernel.arguments]
    sizes = [struct.calcsize("=" + code) for code in codes]
    offsets = tuple(sum(sizes[:n]) for n in range(len(sizes)))
    namespace: dict[str, Any] = {
        "pack": struct.Struct("=" + "".join(codes)).pack,
        "PackError": (struct.error, OverflowError),
        "Number": Number,
        "located": located,
        "ready": partial(_ready, spec),
        "changed": changed_on_device,
        "repaired": partial(_repaired, spec),
        "dtypes": [param.sym.dtype for param in spec.workunit.params],
    }
    source = pack_source(spec, kernel)
    exec(compile(source, f"<GPU launch of {spec.title or 'kernel'}>", "exec"), namespace)
    return namespace["packed"], offsets


def pack_source(spec: KernelSpec, kernel: GpuKernel) -> str:
    """The Python source of `pack`."""
    params = spec.workunit.params
    views = [n for n, param in enumerate(params) if param.rank]
    numbers = [a.param for a in kernel.arguments if a.kind == "address"]
    lines = ["def packed(space, arguments, stream, device, workspace, results):"]
    for name, where in (("b", 0), ("e", 1)):
        axes = "".join(f"{name}{axis}, " for axis in range(spec.rank))
        lines.append(f"    {axes}= space[{where}]")
    if params:
        lines.append("    " + "".join(f"a{n}, " for n in range(len(params))) + "= arguments")
    images = [f"    i{n} = a{n}[0].image" for n in views]
    if views:
        old = " or ".join(
            f"i{n} is None or not i{n}.current or i{n}.stream != stream" for n in views
        )
        lines += [*images, f"    if {old}:", "        ready(arguments, device)"]
        lines += ["    " + line for line in images]
    for n in numbers:
        lines += [
            f"    x{n}, p{n} = a{n}, 0",
            f"    if type(a{n}) is Number: x{n}, p{n} = located(a{n}, dtypes[{n}], stream)",
        ]
    values = ", ".join(_value(spec, argument) for argument in kernel.arguments)
    lines += [
        "    try:",
        f"        found = pack({values})",
        "    except PackError:",
        "        arguments = repaired(arguments)",
        "        if arguments is None: raise",
        "        return packed(space, arguments, stream, device, workspace, results)",
    ]
    for n in views:
        view = spec.views[n]
        if view is not None and view.written:
            lines.append(f"    if a{n}[0].root is not None or i{n}.spent: changed(a{n}[0])")
    return "\n".join([*lines, "    return found"]) + "\n"


def _value(spec: KernelSpec, argument: Argument) -> str:
    """The Python expression for a parameter."""
    n, axis, kind = argument.param, argument.axis, argument.kind
    if kind in ("begin", "end"):
        return f"{kind[0]}{axis}"
    if kind == "pointer":
        return f"i{n}.address + a{n}[1]"
    if kind == "extent":
        return f"a{n}[3][{axis}]"
    if kind == "stride":
        return f"a{n}[2][{axis}] // {spec.workunit.params[n].sym.dtype.size}"
    if kind == "address":
        return f"p{n}"
    if kind == "scalar":
        if argument.dtype.is_complex:
            return f"a{n}.real, a{n}.imag"
        return f"x{n}" if argument.dtype.is_float else f"a{n}"
    return kind  # workspace or results


def _ready(spec: KernelSpec, arguments: Sequence[Any], device: Device) -> None:
    """Bring all views to the device. Raises MemoryError, naming the first that does not fit."""
    for name, argument in zip(spec.names_of_params(), arguments, strict=True):
        if type(argument) is Region:
            try:
                to_device(argument.buffer, device)
            except MemoryError as error:
                raise MemoryError(
                    f"{spec.title or 'kernel'}: argument {name!r}: no memory on GPU "
                    f"{device.number}: {error}"
                ) from None


def _repaired(spec: KernelSpec, arguments: Sequence[Any]) -> list[Any] | None:
    """See `marshal.checked`; results on the device are no numbers to check."""
    plain = [0.0 if type(argument) is Number else argument for argument in arguments]
    found = checked(spec, plain)
    if found is None:
        return None
    pairs = zip(arguments, found, strict=True)
    return [old if type(old) is Number else new for old, new in pairs]


def result_dtypes(spec: KernelSpec) -> tuple[DType, ...]:
    """The types of a kernel's results."""
    return tuple(accumulator.sym.dtype for accumulator in spec.workunit.accumulators)
