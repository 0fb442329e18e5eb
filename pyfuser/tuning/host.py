"""What the cost model knows of the machine: guesses, until `pyfuser calibrate` has measured it.

A calibration is one small JSON file in the cache directory, named by the processor and the number
of threads that it holds for. It only ever decides what is worth fusing, never what is right; so
one that is missing, broken or not ours is as good as none.
"""

from __future__ import annotations

import ast
import platform
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pyfuser.support.caches import once
from pyfuser.support.private_files import read_own
from pyfuser.support.records import dataclass
from pyfuser.support.settings import SETTINGS

SCHEMA = 1
"""Of the file; another number means that another PyFuser wrote it."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the cost model knows of the hardware.

    launch: seconds. bandwidth: bytes a second. streams: how many arrays a loop can walk through
    before hardware prefetchers and load buffers run out; each one more adds the fraction
    `crowding` to the time of the traffic. gathering: the fraction that a loop over gathered
    elements (neighbour lists) loses when it shares its iterations with anything, measured at up to
    a quarter on forces between particles, with equal instructions. looping: the fraction of their
    arithmetic that inner loops of many trips lose so: they are no longer blocked as they are alone,
    measured at up to twice their time on products of matrices. cache: bytes of the second
    level, which belongs to a core. stores: bytes that move for each byte that is stored and not
    read before (a cache reads a line before it changes a part of it).
    """

    launch: float = 5e-6
    bandwidth: float = 20e9
    streams: int = 14
    crowding: float = 0.02
    gathering: float = 0.3
    looping: float = 0.05
    cache: int = 1 << 20
    stores: float = 2.0


DEFAULT = Machine()

LIMITS: dict[str, tuple[float, float]] = {
    "launch": (1e-8, 1e-2),
    "bandwidth": (1e8, 1e14),
    "streams": (2, 1024),
    "crowding": (0.0, 1.0),
    "cache": (1 << 14, 1 << 30),
}
"""What can be measured, and the least and the greatest value that any machine could have."""


class Known(NamedTuple):
    """The machine's constants, which of them were measured, and the file that says so."""

    machine: Machine = DEFAULT
    measured: frozenset[str] = frozenset()
    path: Path | None = None


@once
def known() -> Known:
    """What is known of this machine, read once, when the first plan is made."""
    if not SETTINGS.calibration:
        return Known()
    path = calibration_file()
    found = parsed(read_own(path) or b"")
    return Known(replace(DEFAULT, **found), frozenset(found), path) if found else Known()


def calibration_file() -> Path:
    """Where this machine's calibration is, or would be."""
    return SETTINGS.cache_dir / "machines" / f"{identity()[:32]}.json"


@once
def identity() -> str:
    """A digest of what a calibration depends on: the processor and the number of threads."""
    text = f"{SCHEMA}\0{SETTINGS.threads}\0{cpu_identity()}"
    import hashlib  # with OpenSSL

    return hashlib.sha256(text.encode()).hexdigest()


def text_of(values: Mapping[str, Any], about: Mapping[str, Any] | None = None) -> str:
    """The calibration file with the constants that were measured on this machine.

    about: the facts of another one, its identity among them.
    """
    own = {"identity": identity(), "processor": processor(), "threads": SETTINGS.threads}
    facts = {"schema": SCHEMA, **(own if about is None else about), **values}
    import json  # needed only once a machine

    return json.dumps(facts, indent=4) + "\n"


def parsed(text: bytes, whose: str = "") -> dict[str, Any]:
    """The constants in a calibration file; none if it is broken, or of another machine.

    whose: the identity of the right one, this machine's by default.

    JSON of nothing but numbers and strings is a Python literal, too; the module json would cost
    2 ms at the start of every program.
    """
    try:
        facts = ast.literal_eval(text.decode())
        if facts["schema"] != SCHEMA or facts["identity"] != (whose or identity()):
            return {}
        return {name: _checked(name, facts[name]) for name in LIMITS if name in facts}
    except (ValueError, TypeError, KeyError, SyntaxError, MemoryError, RecursionError):
        return {}


def _checked(name: str, value: Any) -> Any:
    """A value that the field may have. Raises ValueError."""
    low, high = LIMITS[name]
    if not isinstance(value, type(getattr(DEFAULT, name))) or not low <= value <= high:
        raise ValueError(name)
    return value


# --------------------------------------------------------------------------- the processor


@once
def cpu_identity() -> str:
    """The processor's model and instruction sets, as code for -march=native depends on them."""
    lines = [platform.machine()]
    found = _cpu_lines()
    lines += [line for line in found if line.partition(":")[0].strip().lower() in _CPU_FIELDS]
    return "\n".join(lines if found else [*lines, platform.processor()])


def is_intel() -> bool:
    """Whether the processor is one of Intel's: some code has been found faster on these only."""
    return _cpu_field("vendor_id") == "GenuineIntel"


def cpu_flags() -> frozenset[str]:
    """The instruction sets of the processor that the system lets programs use."""
    return frozenset(_cpu_field("flags").split())


def processor() -> str:
    """The processor's name."""
    return _cpu_field("model name") or platform.processor() or platform.machine()


def _cpu_field(name: str) -> str:
    """What the system tells of the first processor by this name; "" if nothing."""
    told = (line.partition(":") for line in _cpu_lines())
    return next((value.strip() for key, _, value in told if key.strip() == name), "")


def _cpu_lines() -> list[str]:
    """What the system tells of the first processor: there may be hundreds."""
    lines: list[str] = []
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if not line.strip():
                    break
                lines.append(line.strip())
    except OSError:
        return []
    return lines


_CPU_FIELDS = frozenset(
    {"vendor_id", "cpu family", "model", "model name", "stepping", "flags", "features"}
    | {"cpu implementer", "cpu architecture", "cpu variant", "cpu part", "cpu"}
)
