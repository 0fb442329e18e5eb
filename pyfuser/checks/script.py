"""A program that does what a trace did: workunits, data and calls, in two files.

The data is what the calls' memory held before they ran, as bytes, one array for each piece of
memory; arguments are views into them, so what overlapped does so again. Memory that nobody could
reach any more, or that was never touched, becomes a View of which the same holds, as such memory is
optimised differently.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pyfuser.checks.image import Image
from pyfuser.codegen.pykokkos import unit as pykokkos_unit
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Workunit
from pyfuser.support import syntax
from pyfuser.support.records import dataclass
from pyfuser.trace.call import Argument, Call, Space
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Buffer, Region

_NAME = re.compile(r"pyfuser-verify-\d+\.py")
_HEADER = """\
# Written by PYFUSER_VERIFY=1 as a fused run differed from the unfused one:
# {reason}
#
# Run this script (it reads {data}): it records the same calls on the same data,
# and the comparison fails again if the mistake is still there.

{imports}

os.environ.setdefault("PYFUSER_VERIFY", "1")

import copy

import numpy as np
import pyfuser
import pykokkos as pk
"""
_HELPERS = '''\
DATA = np.load(Path(__file__).with_suffix(".npz"))


def memory(name, alignment):
    """Saved bytes, at an address that leaves `alignment` when divided by 64."""
    data = DATA[name]
    room = np.empty(data.size + 64, np.uint8)
    start = (alignment - room.ctypes.data) % 64
    room[start : start + data.size] = data
    return room[start : start + data.size]


def array(memory, dtype, offset, shape, strides):
    """A NumPy array inside saved bytes."""
    return np.ndarray(shape, dtype, memory.data, offset, strides)


def part(view, offset, shape, strides):
    """A Subview with any strides (in bytes, as the offset)."""
    result = copy.copy(view)
    region = view._region._replace(offset=offset, shape=shape, strides=strides)
    result._attach(region, shape, view._handle, None)
    return result
'''


@dataclass
class _Memory:
    """A piece of memory before the calls run. `view`: it has to be a View in the script.

    `saved` is None where every byte is zero as nobody has touched it yet.
    """

    name: str
    view: bool
    reachable: bool
    saved: Buffer | None
    nbytes: int
    dtype: DType


class Recording:
    """What a script needs to know of some calls; made before they run."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = list(calls)
        image = Image(calls)
        self._copies = [image.copy(call) for call in calls]
        self._memory: dict[int, _Memory] = {}  # by id() of the copied buffer
        self._known = {  # Futures that earlier flushes computed
            id(a): a.result()
            for call in calls
            for a in call.arguments
            if isinstance(a, Future) and a.ready
        }
        for call, copied in zip(calls, self._copies, strict=True):
            for argument, other in zip(call.arguments, copied.arguments, strict=True):
                if isinstance(argument, Region) and isinstance(other, Region):
                    self._add(argument.buffer, other.buffer, argument.dtype)

    def _add(self, buffer: Buffer, copied: Buffer, dtype: DType) -> None:
        if id(copied) in self._memory:
            return
        special = not (buffer.allocated and buffer.reachable)
        self._memory[id(copied)] = _Memory(
            name=f"memory{len(self._memory)}",
            view=special,
            reachable=buffer.reachable,
            saved=copied if buffer.allocated else None,
            nbytes=copied.nbytes,
            dtype=dtype,
        )

    # ------------------------------------------------------------------- files

    def write(self, directory: Path, reason: str) -> Path | None:
        """Write pyfuser-verify-<n>.py and its data, n being free; gives the script's path.

        None if the calls come from such a script themselves. Raises OSError.
        """
        if any(_NAME.fullmatch(Path(call.code.co_filename).name) for call in self._calls):
            return None
        number = 1
        while True:
            path = directory / f"pyfuser-verify-{number}.py"
            text = self.text(reason, path.with_suffix(".npz").name)
            try:
                with path.open("x", encoding="utf-8") as file:
                    file.write(text)
            except FileExistsError:
                number += 1
                continue
            np.savez(path.with_suffix(".npz"), **self._arrays())
            return path

    def _arrays(self) -> dict[str, Any]:
        return {
            m.name: m.saved.root for m in self._memory.values() if m.saved and m.saved.nbytes
        } | {"nothing": np.zeros(0, np.uint8)}

    def text(self, reason: str, data: str) -> str:
        """The script, which reads the file `data`."""
        workunits = _Workunits()
        calls = [
            line
            for call, copied in zip(self._calls, self._copies, strict=True)
            for line in self._call(call, copied, workunits)
        ]
        imports = sorted(
            {"import os", "from pathlib import Path", *workunits.imports},
            key=lambda line: (line.startswith("from"), line),
        )
        kept = "".join(m.name + ", " for m in self._memory.values() if m.reachable)
        record = ["def record():", *self._make_memory(), *calls, f"return ({kept})"]
        parts = [
            _HEADER.format(reason=" ".join(reason.split()), data=data, imports="\n".join(imports)),
            *(source.strip() + "\n" for source in workunits.sources),
            _HELPERS,
            "\n    ".join(record) + "\n",
            "with pyfuser.fusing():\n    kept = record()\nprint('no difference')\n",
        ]
        return "\n\n".join(parts)

    # ------------------------------------------------------------------- lines

    def _make_memory(self) -> list[str]:
        lines = []
        for m in self._memory.values():
            if not m.view:
                assert m.saved is not None
                name = repr(m.name) if m.nbytes else '"nothing"'
                lines.append(f"{m.name} = memory({name}, {m.saved.address % 64})")
                continue
            length = m.nbytes // m.dtype.size
            lines.append(f"{m.name} = pk.View([{length}], pk.{m.dtype.value})")
            if m.saved is not None and m.nbytes:
                data = f"DATA[{m.name!r}].view(np.{_numpy_name(m.dtype)})"
                lines.append(f"{m.name}[...] = {data}")
        return lines

    def _call(self, call: Call, copied: Call, workunits: _Workunits) -> list[str]:
        function, names = workunits.take(call.workunit)
        arguments = [
            f"{name}={self._argument(own, other, param.sym.dtype)}"
            for name, param, own, other in zip(
                names, call.workunit.params, call.arguments, copied.arguments, strict=True
            )
        ]
        head = [] if call.label is None else [repr(call.label)]
        parts = ", ".join([*head, _policy(call.space), function, *arguments])
        result = "" if call.result is None else f"{self._result(call.result)} = "
        where = f"# {call.name} at {call.location}".replace("\n", " ")
        return [where, f"{result}pk.parallel_{call.pattern}({parts})"]

    def _result(self, future: Future) -> str:
        number = next(n for n, call in enumerate(self._calls) if call.result is future)
        return f"result{number}"

    def _argument(self, own: Argument, other: Argument, dtype: DType) -> str:
        if isinstance(other, Region):
            m = self._memory[id(other.buffer)]
            place = f"{other.offset}, {other.shape}, {other.strides}"
            if m.view:
                return f"part({m.name}, {place})"
            return f"array({m.name}, np.{_numpy_name(other.dtype)}, {place})"
        if isinstance(own, Future):
            if id(own) not in self._known:
                return self._result(own)
            return _number(self._known[id(own)], dtype)
        return _number(own, dtype)


class _Workunits:
    """The sources of workunits, each once and under a name of its own."""

    def __init__(self) -> None:
        self.sources: list[str] = []
        self.imports: set[str] = set()
        self._known: dict[Workunit, tuple[str, list[str]]] = {}
        self._names: set[str] = set()

    def take(self, workunit: Workunit) -> tuple[str, list[str]]:
        """The function's name and those of its parameters that the workunit's `params` are."""
        known = self._known.get(workunit)
        if known is not None:
            return known
        name, number = workunit.name, 1
        while name in self._names or name in _TAKEN:
            number += 1
            name = f"{workunit.name}_{number}"
        self._names.add(name)
        source = pykokkos_unit.emit(replace(workunit, name=name))
        head, mark, rest = source.partition("@pk.workunit\n")
        self.sources.append(mark + rest)
        self.imports.update(line for line in head.splitlines() if line)
        self.imports.discard("import pykokkos as pk")
        (function,) = (n for n in ast.walk(syntax.module(rest)) if isinstance(n, ast.FunctionDef))
        names = [arg.arg for arg in function.args.args]
        found = function.name, names[len(names) - len(workunit.params) :]
        self._known[workunit] = found
        return found


_TAKEN = frozenset({"DATA", "array", "kept", "memory", "np", "os", "part", "record"})


def _policy(space: Space) -> str:
    name = f"pk.ExecutionSpace.{space.execution}"
    if len(space.begin) == 1:
        return f"pk.RangePolicy({name}, {space.begin[0]}, {space.end[0]})"
    return f"pk.MDRangePolicy({list(space.begin)}, {list(space.end)}, space={name})"


def _number(value: Any, dtype: DType) -> str:
    """A number as an argument of exactly this type."""
    if dtype is DType.BOOL:
        return str(bool(value))
    if dtype is DType.INT32:
        return repr(int(value))
    if dtype.is_integer:
        return f"np.{dtype.value}({int(value)})"
    if dtype.is_complex:
        z = complex(value)
        return f"np.{dtype.value}(complex({_float(z.real)}, {_float(z.imag)}))"
    text = _float(float(value))
    return text if dtype is DType.FLOAT64 else f"np.{dtype.value}({text})"


def _float(value: float) -> str:
    return repr(value) if np.isfinite(value) else f"float('{value!r}')"


def _numpy_name(dtype: DType) -> str:
    return "bool_" if dtype is DType.BOOL else dtype.value
