"""Device copies of buffers: which side has the newest values, and when they move.

A buffer has memory on the host, an image on a device, or both. The host's copy is current if and
only if `buffer.root` is set; the image says of itself whether it is. What is not current is brought
up to date when it is needed, so a program that leaves its Views on the device moves nothing.

Memory that a NumPy array outside of us can reach (`exposed`) may be read and written at any time:
it is copied to the device before launches and back after them, as if kernels ran on it.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import ArgumentError

if TYPE_CHECKING:
    from pyfuser.trace.memory import Buffer, Region

Array = np.ndarray[Any, Any]


class Memory(Protocol):
    """The memory of one device; everything happens in the order of the current stream."""

    def allocate(self, nbytes: int, zero: bool) -> tuple[Any, int]:
        """An owner, which frees it when it dies, and the address. Raises MemoryError."""

    def upload(self, address: int, source: Array) -> None:
        """Copy bytes to the device; `source` may change afterwards."""

    def download(self, target: Array, address: int) -> None:
        """Copy bytes from the device, and wait for them."""

    def stream(self) -> int:
        """The current stream's handle."""

    def follow(self, earlier: int) -> None:
        """Let the current stream wait for what another one was given."""

    def array(self, region: Region, owner: Any) -> Any:
        """A region of memory that an owner keeps alive, as an array of the device's library."""

    def values(self, array: Any) -> Array:
        """An array of the device's library, or a number, copied to the host."""

    def to_array(self, value: Any) -> Any:
        """The opposite."""

    def release(self, owner: Any, home: int, latest: int) -> None:
        """Free memory of the stream `home` once the stream `latest` has come so far."""


LATENCY = 1 << 17
"""Bytes that could be copied to the host in the time that a copy of few bytes takes."""


class Use:
    """Whether this process has used a device: only then does anybody look for images.

    views: whether there may be NumPy arrays over a buffer's memory that know nothing of the buffer.
    """

    __slots__ = ("devices", "views")

    def __init__(self) -> None:
        self.devices = False
        self.views = False


USE = Use()


class Image:
    """The memory on a device that stands for a buffer.

    current: whether it has the newest values. stream: the handle of the stream that used it last;
    -1: none yet. foreign: it is somebody else's, and there is no buffer on the host behind it.
    spent: what copies of parts to the host have cost since its values are old, in bytes.
    """

    __slots__ = (
        "_home", "_host", "_owner", "address", "current", "foreign", "memory", "spent", "stream",
    )  # fmt: skip

    def __init__(self, memory: Memory, owner: Any, address: int, foreign: bool = False) -> None:
        self.memory = memory
        self.address = address
        self.current = foreign
        self.foreign = foreign
        self.stream = self._home = -1 if foreign else memory.stream()
        self._owner = owner
        self._host: Array | None = None  # the host's memory while its values are old
        self.spent = 0

    def use(self) -> None:
        """The current stream is about to use it."""
        stream = self.memory.stream()
        if stream != self.stream:
            if self.stream >= 0:
                self.memory.follow(self.stream)
            self.stream = stream

    def __del__(self, at_exit: Callable[[], bool] = sys.is_finalizing) -> None:
        if at_exit():  # the device's library may be gone
            return
        if not self.foreign and self.stream != self._home and self._owner is not None:
            self.memory.release(self._owner, self._home, self.stream)

    # ------------------------------------------------------------------- somebody else's

    def array(self, region: Region) -> Any:
        """A region of somebody else's memory as an array of the device's library."""
        return self.memory.array(region, self._owner)

    def values(self, region: Region) -> Array:
        """A copy of a region of somebody else's memory."""
        return self.memory.values(self.array(region))

    def elements(self, region: Region) -> Any:
        """What sets elements of a region of somebody else's memory."""
        return Elements(self.memory, self.array(region))

    # ------------------------------------------------------------------- both sides

    def set_aside(self, host: Array | None) -> None:
        """The host's values are old from now on; keep its memory if others have its address."""
        self._host = host

    def part(self, region: Region) -> Array | None:
        """A copy of a region for the host, whose values are old; None: it should have them all.

        It should, once the copies of parts that it asked for have cost as much.
        """
        low, high = region.bounds()
        self.spent += LATENCY + high - low
        if self.spent > region.buffer.nbytes:
            return None
        values = np.empty(high - low, np.uint8)
        self.use()
        self.memory.download(values, self.address + low)
        COUNTERS.bytes_to_host += values.nbytes
        dtype, offset = region.dtype.numpy, region.offset - low
        found: Array = np.ndarray(region.shape, dtype, values.data, offset, region.strides)
        return found

    def fetch(self, nbytes: int) -> Array:
        """The values as bytes on the host, in the memory they were in before if that was kept."""
        if self.foreign:
            raise ArgumentError(
                "an array in device memory is an argument of a call that the host runs; run it on "
                "pk.Cuda (or pk.HIP), or copy the array with cupy.asnumpy"
            )
        host = self._host
        if host is None:
            host = np.empty(nbytes, dtype=np.uint8)
        self._host = None
        self.use()
        self.memory.download(host, self.address)
        COUNTERS.bytes_to_host += nbytes
        return host


class Elements:
    """Sets elements of an array in somebody else's memory on a device."""

    def __init__(self, memory: Memory, array: Any) -> None:
        self._memory = memory
        self._array = array

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array[key] = self._memory.to_array(value)

    def fill(self, value: Any) -> None:
        """Set all of them."""
        self._array.fill(value)


def to_device(buffer: Buffer, memory: Memory, zero: bool = True) -> Image:
    """The image of a buffer on a device, with current values, for use on the current stream.

    zero: whether memory that is new to both sides has to be zero. Raises MemoryError.
    """
    image = buffer.image
    if image is not None and image.memory is not memory and not image.foreign:
        buffer.allocate()  # another device has it: by way of the host
        image = buffer.image = None
    if image is None:
        fresh = buffer.root is None
        if buffer.lent:
            _refuse_unshared(buffer)
        owner, address = memory.allocate(buffer.nbytes, zero and fresh)
        image = buffer.image = Image(memory, owner, address)
        image.current = fresh
    image.use()
    if not image.current:
        assert buffer.root is not None
        memory.upload(image.address, buffer.root.reshape(-1, order="A").view(np.uint8))
        COUNTERS.bytes_to_device += buffer.nbytes
        image.current = True
    return image


def _refuse_unshared(buffer: Buffer) -> None:
    """Raise ArgumentError if another buffer may stand for the same memory of NumPy's."""
    root = buffer.root
    assert root is not None
    if _OWNERS.setdefault(id(root), buffer) is not buffer or owner_of(root) is not root:
        raise ArgumentError(
            "a View of a part of a NumPy array, or of memory that NumPy did not allocate, cannot "
            "be copied to a device: make a View of a copy, pk.array(array.copy()), or call "
            "pk.set_default_space(pk.Cuda) (or pk.HIP) before Views are made"
        )


def changed_on_device(buffer: Buffer) -> None:
    """A kernel on the device writes the buffer: the host's values are old."""
    image, root = buffer.image, buffer.root
    assert image is not None
    if root is not None:  # else they are old already, and what was set aside stays
        kept = buffer.external or (USE.views and buffer.seen)
        image.set_aside(root if kept else None)
    image.spent = 0
    buffer.root = None


def changed_on_host(*buffers: Buffer) -> None:
    """The host may have written buffers, whose values it has: the images are old."""
    for buffer in buffers:
        if buffer.image is not None:
            buffer.image.current = False


def exposed(buffer: Buffer) -> bool:
    """Whether an array that is not ours may reach the buffer's memory on the host."""
    if not buffer.external or (buffer.image is not None and buffer.image.foreign):
        return False
    if buffer.lent:
        return True
    image = buffer.image
    if buffer.root is not None:
        return sys.getrefcount(buffer.root) > _ALONE
    return image is not None and sys.getrefcount(image._host) > _ALONE


def has_foreign(buffers: Iterable[Buffer]) -> bool:
    """Whether somebody else's memory on a device is among them, which the host cannot copy."""
    return any(buffer.image is not None and buffer.image.foreign for buffer in buffers)


def give_to_host(buffers: Iterable[Buffer]) -> None:
    """After launches: what they changed is copied to where arrays outside look for it.

    Those may write at any time from now on, so the images are old.
    """
    for buffer in buffers:
        if buffer.external and buffer.image is not None and exposed(buffer):
            buffer.allocate()
            buffer.image.current = False


class _Owner:
    def __init__(self) -> None:
        self.root = np.zeros(1, dtype=np.uint8)


_OWNER = _Owner()
#: What `sys.getrefcount` says of an array that one attribute alone refers to.
_ALONE = sys.getrefcount(_OWNER.root)


# --------------------------------------------------------------------------- NumPy's memory

_OWNERS: weakref.WeakValueDictionary[int, Buffer] = weakref.WeakValueDictionary()
"""By id() of an array that owns memory: the buffer for all of it, which keeps the array alive."""


def note_owner(owner: Array, buffer: Buffer) -> None:
    """Arrays over the memory of `owner` are parts of a buffer."""
    _OWNERS[id(owner)] = buffer


def owner_of(array: Array) -> Array | None:
    """The array that owns an array's memory; None if NumPy does not know it."""
    base: Any = array
    while base.base is not None:
        base = base.base
        base = getattr(base, "owner", base)  # see `memory._Memory` and `exports.Export`
        if not isinstance(base, np.ndarray):
            return None
    return base if base.flags.forc else None


def shared_buffer(owner: Array, wrap: Callable[[Array], Buffer]) -> Buffer:
    """The one buffer for all arrays over an owner's memory."""
    buffer = _OWNERS.get(id(owner))
    if buffer is None:
        buffer = wrap(owner)
        note_owner(owner, buffer)
    return buffer
