"""Execution and memory spaces, layouts and traits, and the process's defaults."""

from __future__ import annotations

from enum import Enum, EnumMeta
from types import ModuleType
from typing import Any

from pyfuser.support.caches import Table, once
from pyfuser.support.errors import ArgumentError, ArgumentValueError, DeviceError
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import Space


class _Named(EnumMeta):
    """Attributes that are not there are told of with the one that may be meant."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        known = ", ".join(cls.__members__)
        raise AttributeError(f"pk.{cls.__name__} has no {name}; it has {known}") from None


class ExecutionSpace(Enum, metaclass=_Named):
    """Who executes a kernel. `Debug` calls the Python function for each index in turn."""

    Cuda = "Cuda"
    HIP = "HIP"
    OpenMP = "OpenMP"
    Threads = "Threads"
    Serial = "Serial"
    Debug = "Debug"
    Default = "Default"

    # Enum hashes the name through Python code; policies are looked up on every call.
    __hash__ = object.__hash__


class MemorySpace(Enum):
    """Where a View's memory lies: with us, wherever it is used."""

    CudaUVMSpace = "CudaUVMSpace"
    CudaSpace = "CudaSpace"
    OpenMPTargetSpace = "OpenMPTargetSpace"
    HostSpace = "HostSpace"
    HIPSpace = "HIPSpace"
    HIPManagedSpace = "HIPManagedSpace"
    MemorySpaceDefault = None


class Layout(Enum):
    """LayoutRight: the last index is contiguous in memory; LayoutLeft: the first."""

    LayoutDefault = None
    LayoutLeft = "LayoutLeft"
    LayoutRight = "LayoutRight"


class Trait(Enum):
    """Memory traits, of which two change something here.

    Atomic: updates (`x[i] += e`) are atomic. Unmanaged: the memory is somebody else's.
    """

    Atomic = "Atomic"
    TraitDefault = None
    RandomAccess = "RandomAccess"
    Restrict = "Restrict"
    Unmanaged = "Unmanaged"


AVAILABLE = frozenset({ExecutionSpace.OpenMP, ExecutionSpace.Serial, ExecutionSpace.Debug})
GPU_SPACES = frozenset({ExecutionSpace.Cuda, ExecutionSpace.HIP})

#: Spaces of the host by what policies have; None: a number of indices, while the default is one.
HOSTS: dict[ExecutionSpace | None, str] = {
    space: space.value for space in AVAILABLE if space is not ExecutionSpace.Debug
}

_IN_USE: set[ExecutionSpace] = set()  # of GPU_SPACES: those that have been asked for, and are there

#: Policies that were used before, by number of indices or by (begin, end, execution space): the
#: space, and what `dispatch` begins its key with. Forgotten when a default changes.
KNOWN_POLICIES: Table[Any, tuple[Space, int]] = Table("policies", 4096)


class Defaults:
    """What the process has set."""

    space = ExecutionSpace(SETTINGS.space)
    uvm = False


if Defaults.space in HOSTS:
    HOSTS[None] = SETTINGS.space


def get_default_space() -> ExecutionSpace:
    """The execution space of policies that name none."""
    return Defaults.space


def set_default_space(space: ExecutionSpace) -> None:
    """Set the execution space of policies that name none. Raises DeviceError without a GPU."""
    if not isinstance(space, ExecutionSpace):
        raise ArgumentError(
            f"set_default_space: {space!r} is not an execution space; there are "
            + ", ".join(f"pk.{each.name}" for each in ExecutionSpace)
        )
    if space is not ExecutionSpace.Default:
        if space in GPU_SPACES:
            resolve_space(space)
        Defaults.space = space
        HOSTS.pop(None, None)
        if space in HOSTS:
            HOSTS[None] = space.value
        KNOWN_POLICIES.clear()


class ExecutionSpaceInstance:
    """An instance of an execution space: on a GPU a CuPy stream, on the host all are alike."""

    def __init__(self, space: ExecutionSpace, stream: Any = None) -> None:
        self.space: ExecutionSpace = resolve_space(space)
        if stream is not None:
            if self.space not in GPU_SPACES:
                raise ArgumentError(f"ExecutionSpaceInstance: {space} takes no stream")
            gpu().check_stream(self.space.value, stream)
        self.stream = stream


def stream_of(space: Any) -> Any:
    """The stream of an instance of an execution space; None: CuPy's current one."""
    return space.stream if isinstance(space, ExecutionSpaceInstance) else None


@once
def gpu() -> ModuleType:
    """What knows of GPUs, which programs without one do not load."""
    from pyfuser.engine.gpu import spaces

    return spaces


def resolve_space(space: Any) -> ExecutionSpace:
    """The execution space that a space, an instance or `Default` names.

    Raises ArgumentError for other objects, ArgumentValueError for spaces that are not available,
    and DeviceError, a ValueError, too, where CuPy or a GPU is missing.
    """
    if space is ExecutionSpace.Default and Defaults.space in AVAILABLE:
        return Defaults.space
    if isinstance(space, ExecutionSpaceInstance):
        space = space.space
    if not isinstance(space, ExecutionSpace):
        steps = "; a range has no step" if isinstance(space, int) else ""
        raise ArgumentError(f"{space!r} is not an execution space, such as pk.OpenMP{steps}")
    resolved = Defaults.space if space is ExecutionSpace.Default else space
    if resolved in GPU_SPACES:
        if resolved not in _IN_USE:
            try:
                gpu().use(resolved.value)
            except DeviceError as error:
                raise DeviceError(f"{error}; there are: {_available()}") from None
            _IN_USE.add(resolved)
    elif resolved not in AVAILABLE:
        raise ArgumentValueError(
            f"Execution space {resolved.value} is not available; there are: {_available()}"
        )
    return resolved


def _available() -> str:
    return ", ".join(sorted(space.value for space in AVAILABLE))


def is_host_execution_space(space: ExecutionSpace) -> bool:
    """Whether a space runs on the host's cores."""
    if space is ExecutionSpace.Default:
        space = Defaults.space
    return space in (ExecutionSpace.OpenMP, ExecutionSpace.Threads, ExecutionSpace.Serial)


def get_default_memory_space(space: ExecutionSpace) -> MemorySpace:
    """The memory space that belongs to an execution space."""
    if space is ExecutionSpace.Cuda:
        return MemorySpace.CudaUVMSpace if Defaults.uvm else MemorySpace.CudaSpace
    if space is ExecutionSpace.HIP:
        return MemorySpace.HIPManagedSpace if Defaults.uvm else MemorySpace.HIPSpace
    return MemorySpace.HostSpace


def gpu_memory_space() -> MemorySpace:
    """The memory space of the GPU in use."""
    is_hip = gpu().loaded().space == "HIP"
    return MemorySpace.HIPSpace if is_hip else MemorySpace.CudaSpace


def get_default_layout(space: MemorySpace) -> Layout:
    """The layout that suits a memory space."""
    return Layout.LayoutRight if space is MemorySpace.HostSpace else Layout.LayoutLeft


def is_uvm_enabled() -> bool:
    """Whether Views of GPU programs are made in unified memory."""
    return Defaults.uvm


def enable_uvm() -> None:
    """Make Views of GPU programs in unified memory."""
    Defaults.uvm = True


def disable_uvm() -> None:
    """Make Views of GPU programs in device memory."""
    Defaults.uvm = False


def set_device_id(device_id: int) -> None:
    """Choose the GPU that later calls run on, which becomes CuPy's current one.

    Raises RuntimeError if there is no such GPU.
    """
    if not isinstance(device_id, int):
        raise TypeError("'device_id' must be of type 'int'")
    gpu().set_device(device_id)


def initialize() -> None:
    """Nothing to do: the engine starts with the first kernel."""
