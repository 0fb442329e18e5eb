"""Compiled GPU kernels, ready to be launched."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, compress
from math import prod
from operator import sub
from typing import Any, NamedTuple

from pyfuser.codegen.gpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.engine.gpu.arguments import make_pack, result_dtypes
from pyfuser.engine.gpu.compiler import machine_code
from pyfuser.engine.gpu.device import Device, current
from pyfuser.engine.gpu.library import loaded
from pyfuser.engine.gpu.registers import Registers, registers_of
from pyfuser.engine.gpu.results import Number, Results
from pyfuser.ir.nodes import Sym
from pyfuser.ir.visit import reads
from pyfuser.nest.declined import declined
from pyfuser.nest.spec import KernelSpec, names_of
from pyfuser.support.caches import Table
from pyfuser.support.errors import DeclinedError
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.future import Future
from pyfuser.trace.gate import Ran
from pyfuser.trace.images import to_device
from pyfuser.trace.memory import Box, Region
from pyfuser.trace.shape import RegionShape, known_scalars
from pyfuser.transform.kernel import Kernel

MAX_GRIDS = 256
MAX_KERNELS = 2048

Shape = tuple[int, int, int, int, int, int]


class Bound(NamedTuple):
    """One launch with all its arguments: what the driver needs, and nothing of ours.

    shape: None for an empty space, where nothing is to be launched. packed: all parameters.
    shared: bytes of dynamic shared memory.
    """

    launchable: Launchable
    device: Device
    handle: int
    shape: Shape | None
    packed: bytes
    results: Results | None
    shared: int = 0

    def numbers(self) -> tuple[Any, ...]:
        """The results, without waiting for them."""
        return self.launchable.values(self.results)


class Launchable:
    """A kernel for the GPUs of this process; see `engine.launchable.Launchable`.

    run(space, arguments, ran=None) launches it on CuPy's current stream and returns at once: the
    results are `Number`s. Code is loaded when a device first launches it.
    """

    __slots__ = (
        "_block", "_few", "_first", "_functions", "_grids", "_lock", "_modules", "_pack",
        "_pointers", "dtypes", "kernel", "source", "spec",
    )  # fmt: skip
    on_device = True

    def __init__(self, spec: KernelSpec) -> None:
        self.spec = spec
        self.kernel = emit(spec, loaded().dialect, SETTINGS.fastmath)
        self.source = self.kernel.source
        self.dtypes = result_dtypes(spec)
        self._pack, offsets = make_pack(spec, self.kernel)
        self._few: Launchable | None = None
        self._grids: dict[Any, tuple[Shape | None, int]] = {}
        self._functions: dict[int, tuple[Any, ...]] = {}  # by device: entry points
        self._modules: list[Any] = []
        size = (offsets[-1] if offsets else 0) + 16
        self._block = ctypes.create_string_buffer(size)
        start = ctypes.addressof(self._block)
        addresses = [start + offset for offset in offsets]
        self._pointers = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
        self._first = ctypes.addressof(self._pointers)
        self._lock = threading.RLock()  # a signal handler may launch, too

    def renamed(self, spec: KernelSpec) -> Launchable:
        """The same code with another spec's names in messages."""
        other = Launchable.__new__(Launchable)
        for name in self.__slots__:
            setattr(other, name, getattr(self, name))
        other.spec = spec
        other._pack, _ = make_pack(spec, self.kernel)
        other._few = None
        return other

    def sized(self, space: tuple[Any, ...]) -> Launchable:
        """The kernel for a space: if that is small, one in small blocks, for more processors.

        Which it is depends on the number of iterations alone, as the order of sums does.
        """
        tuning = self.spec.tuning
        if self.kernel.launch.rule not in ("map", "reduce") or tuning.gpu_threads <= (
            tuning.gpu_few_threads
        ):
            return self
        begin, end = space[:2]
        if prod(map(sub, end, begin)) >= tuning.gpu_few:
            return self
        if self._few is None:
            small = replace(tuning, gpu_threads=tuning.gpu_few_threads, gpu_terms=1)
            self._few = Launchable(replace(self.spec, tuning=small))
        return self._few

    def load(self, device: Device) -> tuple[Any, ...]:
        """The entry points on a device. Raises KernelError or CacheError."""
        functions = self._functions.get(device.number)
        if functions is None:
            module = device.cuda.Module()
            module.load(machine_code(self.kernel, device))
            self._modules.append(module)
            functions = tuple(module.get_function(entry) for entry in self.kernel.entries)
            self._functions[device.number] = functions
        return functions

    def registers(self, space: tuple[Any, ...]) -> tuple[Registers, ...]:
        """What the compiler made of each entry point that is launched for a space, on the current
        device.
        """
        device, sized = current(), self.sized(space)
        return tuple(registers_of(device, f) for f in sized.load(device))

    # ------------------------------------------------------------------- launching

    def run(
        self, space: tuple[Any, ...], arguments: Sequence[Any], ran: Ran | None = None
    ) -> tuple[Any, ...]:
        """Launch it; see `engine.launchable.Launchable`."""
        bound = self.bind(space, arguments)
        launch((bound,), bound.handle, Ran() if ran is None else ran)
        return bound.numbers()

    def bind(self, space: tuple[Any, ...], arguments: Sequence[Any]) -> Bound:
        """One launch, ready to go on the current stream of the current device.

        Raises OverflowError or ArgumentError for a number that does not fit its parameter,
        DeclinedError for more scratch memory than a block may have, and MemoryError.
        """
        sized = self.sized(space)
        if sized is not self:
            return sized.bind(space, arguments)
        device = current()
        stream = device.stream()
        box = space[0], space[1]
        found = self._grids.get(box)
        if found is None:
            if len(self._grids) >= MAX_GRIDS:
                self._grids.clear()
            found = self._grids[box] = self._grid(box)
        shape, working = found
        results, workspace, address = None, 0, 0
        if shape is None:
            return Bound(self, device, device.handles[stream], None, b"", None)
        if self.dtypes:
            results = Results(device, stream, len(self.dtypes))
            address = results.address
            if working:
                workspace = device.workspace(stream, working)
        shared = self._shared(arguments) if self.kernel.launch.spaces else 0
        packed = self._pack(space, arguments, stream, device, workspace, address)
        return Bound(self, device, device.handles[stream], shape, packed, results, shared=shared)

    def _grid(self, box: tuple[Any, Any]) -> tuple[Shape | None, int]:
        """The grid for a box, and the bytes of its workspace."""
        grid = self.kernel.launch.grid(*box)
        if grid is None:
            return None, 0
        return (*grid.blocks, *grid.threads), self.kernel.launch.workspace_bytes(*box)

    def _shared(self, arguments: Sequence[Any]) -> int:
        """The bytes of a block's scratch memory whose size the arguments decide."""
        pairs = list(zip(self.spec.workunit.params, arguments, strict=True))
        views = {p.sym: a[3] for p, a in pairs if p.rank}
        numbers = {p.sym: int(a) for p, a in pairs if not p.rank and p.sym.dtype.is_integer}
        return self.scratch(numbers, views)

    def scratch(self, numbers: Mapping[Sym, int], views: Mapping[Sym, Sequence[int]]) -> int:
        """The same, for whole numbers and views' shapes. Raises DeclinedError if too many."""
        room = self.kernel.launch.room
        size = self.kernel.launch.shared_bytes(numbers, views)
        if size is None or size > room:
            takes = "more bytes than can be counted" if size is None else f"{size} bytes"
            raise DeclinedError(
                f"{self.spec.title or 'kernel'}: the scratch memory of a team takes {takes}, and "
                f"a block of a GPU has {room}: ask for less, or give its policy the "
                "space pk.OpenMP"
            )
        return size

    def calls(self, bound: Bound, handle: int) -> list[tuple[int, ...]]:
        """The arguments of the driver's `launchKernel`, one call for each entry point.

        They refer to the memory `_block`, into which what is packed must come first: hold the lock
        until they are made.
        """
        functions = self._functions.get(bound.device.number) or self.load(bound.device)
        pointers, shape, shared = self._first, bound.shape, bound.shared
        assert shape is not None
        return [(f.ptr, *shape, shared, handle, pointers, 0) for f in functions]

    def values(self, result: Any) -> tuple[Any, ...]:
        """The numbers that a run has put into `ran`."""
        if not self.dtypes:
            return ()
        if result is None:  # of an empty space
            return (0,) * len(self.dtypes)
        numbers: tuple[Any, ...] = result.numbers(self.dtypes)
        return numbers

    @staticmethod
    def allocate(region: Region, box: Box) -> None:
        """Make memory of which `run` overwrites a box: not zeroed, if that is all of it."""
        begin, end = box
        whole = not any(begin) and tuple(end) == region.shape
        whole = whole and prod(region.shape) * region.dtype.size == region.buffer.nbytes
        device = current()
        try:
            to_device(region.buffer, device, zero=not whole)
        except MemoryError as error:
            raise MemoryError(
                f"no memory on GPU {device.number} for a View of shape {region.shape} and type "
                f"{region.dtype.value}: {error}"
            ) from None

    def takes(self, place: int, number: Any) -> bool:
        """Whether an argument may be a result (see `Bound.numbers`) that is not computed yet."""
        if type(number) is not Number:  # known, as its space is empty
            return True
        return number.dtype is self.spec.workunit.params[place].sym.dtype

    def number(self, future: Future) -> Any:
        """A Future as an argument: where it is, or its value."""
        deferred = future.deferred
        return deferred if type(deferred) is Number else future.result()


def launch(bounds: Iterable[Bound], handle: int, ran: Ran) -> None:
    """Give launches to a stream, one after the other; see `make_run` for `ran`."""
    for bound in bounds:
        note = ((0, bound.results),)
        before = len(ran)
        if bound.shape is None:
            ran.extend(compress(note, ran.gate))
        else:
            start = bound.device.library.driver.launchKernel
            with bound.launchable._lock:
                calls = bound.launchable.calls(bound, handle)
                packed = bound.launchable._block, bound.packed, len(bound.packed)
                # Signal handlers run between bytecodes; these iterators are C throughout. What
                # memmove returns is dropped, and what the driver does, None.
                moved = compress(map(ctypes.memmove, *zip(packed, strict=True)), (False,))
                steps = chain(moved, map(start, *zip(*calls, strict=True)), note)
                ran.extend(filter(None, chain.from_iterable(compress((steps,), ran.gate))))
        ran.pass_on(before)


# --------------------------------------------------------------------------- preparing

KERNELS: Table[KernelSpec, Launchable] = Table("kernels of GPUs", MAX_KERNELS)


def prepare(kernel: Kernel) -> Launchable:
    """A kernel, compiled for the current device, ready to run.

    Raises DeclinedError for what no GPU can run, KernelError or CacheError.
    """
    spec = spec_of(kernel)
    why = declined(spec)
    if why:
        raise DeclinedError(
            f"{kernel.workunit.name}: pk.{kernel.space.execution} cannot run it: {why}; give its "
            "policy the space pk.OpenMP"
        )
    known = KERNELS.get(spec)
    if known is None:
        known = KERNELS.keep(spec, Launchable(spec))
    known.sized(kernel.space).load(current())
    found = known if names_of(known.spec) == names_of(spec) else known.renamed(spec)
    if known.kernel.launch.spaces:
        _check_scratch(found, kernel)
    return found


def _check_scratch(launchable: Launchable, kernel: Kernel) -> None:
    """Refuse a kernel that asks for too much scratch memory, if its size is known already."""
    pairs = list(zip(launchable.spec.workunit.params, kernel.shapes, strict=True))
    views = {p.sym: shape.shape for p, shape in pairs if isinstance(shape, RegionShape)}
    numbers = known_scalars(launchable.spec.workunit, kernel.shapes)
    asked = reads(
        *(extent for space in launchable.kernel.launch.spaces for extent in space.extents)
    )
    if asked <= numbers.keys():
        launchable.scratch(numbers, views)
