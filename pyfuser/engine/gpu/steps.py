"""A launch as the extension makes it (`hot/device.c`): parameters in words, and what changes.

Spaces, extents and strides are a part of a trace's key: only addresses and scalars are filled in.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pyfuser.codegen.gpu.unit import Argument
from pyfuser.engine.gpu.device import Device, current
from pyfuser.engine.gpu.launchable import Launchable
from pyfuser.engine.gpu.library import Library
from pyfuser.engine.gpu.results import Number, Results
from pyfuser.engine.marshal import CODES
from pyfuser.engine.patches import KINDS, NOBODY, NUMBERS
from pyfuser.ir.dtypes import DType
from pyfuser.support.extension import HOT
from pyfuser.trace.images import Image
from pyfuser.trace.memory import Box, Region
from pyfuser.tuning.thresholds import NOW

MOST = 512
"""Parameters that the extension takes."""

_LIBRARIES = {"Cuda": "libcuda.so.1", "HIP": "libamdhip64.so"}
_FUNCTIONS = {
    "Cuda": (
        "cuLaunchKernel", "cuStreamBeginCapture_v2", "cuStreamEndCapture",
        "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuGraphExecDestroy", "cuGraphDestroy",
    ),
    "HIP": ("hipModuleLaunchKernel",),
}  # fmt: skip


def step_of(
    launchable: Launchable,
    space: tuple[Any, ...],
    arguments: Sequence[Any],
    sources: Sequence[tuple[int, int] | None],
    boxes: Mapping[int, Any],
    results: tuple[tuple[int, int], ...],
) -> tuple[Any, ...] | None:
    """A step of `HOT.Prepared`; None for what the extension leaves to Python.

    sources: the call of each argument, and the place there; None: it is known. boxes: by argument,
    what is overwritten. results: calls and types of the values. Left to Python are kernels of two
    entry points, and scratch memory whose size comes with the call.
    """
    launchable = launchable.sized(space)
    kernel = launchable.kernel
    if kernel.launch.spaces or len(kernel.entries) != 1:
        return None
    grid = kernel.launch.grid(*space[:2])
    if grid is None or len(kernel.arguments) > MOST:
        return None
    device = current()
    (function,) = launchable.load(device)
    words, where, patches = b"", [], []
    for argument in kernel.arguments:
        slot, n = len(words) // 8, argument.param
        where.append(slot)
        words += _word(argument, space, arguments, sources)
        source = sources[n] if argument.kind in ("pointer", "scalar") else None
        if argument.kind == "pointer":
            if source is None:
                return None
            view = launchable.spec.views[n]
            kind = "written" if view is None or view.written else "pointer"
            patches.append((KINDS[kind], slot, *source, 0, boxes.get(n), *NOBODY))
        elif argument.kind in ("results", "workspace"):
            patches.append((KINDS[argument.kind], slot, 0, 0, 0, None, *NOBODY))
        elif source is not None:
            dtype = argument.dtype
            kind = "number" if dtype.is_float and not dtype.is_complex else "scalar"
            patches.append((KINDS[kind], slot, *source, NUMBERS[dtype], None, *NOBODY))
    shape = (*grid.blocks, *grid.threads)
    room = None
    if launchable.dtypes:
        room = partial(_room, launchable, kernel.launch.workspace_bytes(*space[:2]))
    given = shape, device.number, tuple(where), room
    return function.ptr, words, tuple(patches), results, None, given


def _room(launchable: Launchable, working: int) -> tuple[Results, tuple[Any, ...], int, int]:
    """Memory for the results of a launch: who has it, the numbers in it, where it is.

    The last is where the working memory is.
    """
    device = current()
    stream = device.stream()
    results = Results(device, stream, len(launchable.dtypes))
    workspace = device.workspace(stream, working) if working else 0
    return results, results.numbers(launchable.dtypes), results.address, workspace


def _word(
    argument: Argument,
    space: tuple[Any, ...],
    arguments: Sequence[Any],
    sources: Sequence[tuple[int, int] | None],
) -> bytes:
    """A parameter, with zeros where it is filled in."""
    kind, n, axis = argument.kind, argument.param, argument.axis
    if kind in ("begin", "end"):
        return struct.pack("=q", space[kind == "end"][axis])
    if kind == "extent":
        return struct.pack("=q", arguments[n].shape[axis])
    if kind == "stride":
        region = arguments[n]
        return struct.pack("=q", region.strides[axis] // region.dtype.size)
    if kind != "scalar":  # an address: of a result on the device there is none here
        return bytes(8)
    dtype = argument.dtype
    if sources[n] is not None:
        return bytes(16 if dtype is DType.COMPLEX128 else 8)
    number = arguments[n]
    parts = (number.real, number.imag) if dtype.is_complex else (number,)
    return struct.pack("=" + CODES[dtype], *parts).ljust(8, b"\0")


# --------------------------------------------------------------------------- what it calls


def addresses(library: Library) -> tuple[int, ...]:
    """Where the driver's functions are, a launch and those of graphs; 0 for what is missing."""
    names = _FUNCTIONS[library.space]
    try:
        driver = ctypes.CDLL(_LIBRARIES[library.space])
        found = [ctypes.cast(getattr(driver, name), ctypes.c_void_p).value or 0 for name in names]
    except (OSError, AttributeError):
        found = []
    return (*found, *(0,) * (len(_FUNCTIONS["Cuda"]) - len(found)))


def make(region: Region, box: Box | None) -> None:
    """Memory on the current device for a region, of which a box is overwritten if there is one."""
    begin, end = box or (region.shape, region.shape)
    Launchable.allocate(region, (begin, end))


def set_up(library: Library, place: type) -> None:
    """Tell the extension how this process launches on GPUs; place: see `spaces.Place`."""
    if HOT is None:
        return
    functions = library.runtime.getDevice, library.cuda.get_current_stream, make
    found = addresses(library)
    HOT.bind_device((place, Image, Number, Results), functions, found, NOW.running.graph_launches)
    if all(found):
        capture_on(current())


def capture_on(device: Device | None) -> None:
    """Where the extension captures launches into graphs; None: nowhere."""
    if HOT is not None:
        HOT.capture_on(0 if device is None else device.capture_stream().ptr)
