"""What the cost model knows of a GPU: guesses, until `pyfuser calibrate --space` has measured it.

As for the host (see `tuning.host`): one small JSON file for each kind of GPU, which decides only
what is worth fusing.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from pyfuser.support.caches import once
from pyfuser.support.private_files import read_own
from pyfuser.support.settings import SETTINGS
from pyfuser.tuning.host import SCHEMA, Known, Machine, parsed

DEFAULT = Machine(
    launch=4e-6,
    bandwidth=1.5e12,
    streams=64,
    crowding=0.0,
    gathering=0.0,
    looping=0.0,
    cache=32 << 20,
    stores=1.0,
)
"""No prefetchers to run out of, and a store writes whole sectors, which are not read before."""


class _Present:
    """The GPU in use: its name, and all that a calibration depends on."""

    name = ""
    facts = ""


def use(name: str, facts: str) -> None:
    """Plan for this GPU from now on."""
    if (name, facts) != (_Present.name, _Present.facts):
        _Present.name, _Present.facts = name, facts
        known.cache_clear()


def name() -> str:
    """What the GPU in use is called; "" if none is."""
    return _Present.name


def identity() -> str:
    """A digest of what a calibration depends on."""
    text = f"{SCHEMA}\0{_Present.name}\0{_Present.facts}"
    return hashlib.sha256(text.encode()).hexdigest()


def calibration_file() -> Path:
    """Where this GPU's calibration is, or would be."""
    return SETTINGS.cache_dir / "machines" / f"{identity()[:32]}.json"


@once
def known() -> Known:
    """What is known of the GPU in use."""
    if not SETTINGS.calibration:
        return Known(DEFAULT)
    path = calibration_file()
    found = parsed(read_own(path) or b"", identity())
    return Known(replace(DEFAULT, **found), frozenset(found), path if found else None)
