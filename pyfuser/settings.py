"""Every PYFUSER_* setting, in one table, read once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from pyfuser.errors import SettingError


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment asks for.

    ======================  =======================================================  ==========
    variable                meaning                                                  default
    ======================  =======================================================  ==========
    PYFUSER_VERIFY          1: every flush also runs unfused on copies and compares  0
    PYFUSER_CHECK           bounds, races: find mistakes in workunits; sync: reads   nothing
                            of arrays before the launches on them have run
    PYFUSER_DEBUG           0 to 5: plan, rejections, dependences, sources, passes   0
    PYFUSER_CACHE_DIR       where compiled kernels are kept                          user cache
    PYFUSER_CXX             the C++ compiler                                         $CXX or g++
    PYFUSER_THREADS         threads of the OpenMP execution space                    all cores
    PYFUSER_FASTMATH        1: let the compiler change floating-point values         0
    PYFUSER_FUSION          0: decorated workunits are not traced                    1
    PYFUSER_CALIBRATION     0: plan with guessed constants, whatever was measured    1
    PYFUSER_ARBITRATE       0: never try in a steady loop what the model doubts      1
    PYFUSER_DEFER           0: who reads a result runs everything that is pending    1
    PYFUSER                 on: trace every call, as `pyfuser run` does              off
    PYFUSER_FRONTEND        embedded: never use an installed PyKokkos; or auto       auto
    PYFUSER_ENGINE          who runs fused kernels: native, or an installed pykokkos native
    ======================  =======================================================  ==========
    """

    verify: bool
    check: frozenset[str]
    debug: int
    cache_dir: Path
    compiler: str
    threads: int
    fastmath: bool
    fusion: bool
    calibration: bool
    arbitrate: bool
    defer: bool
    frontend: str
    on: bool = False
    engine: str = "native"
    sync: bool = False  # of PYFUSER_CHECK; fuses as ever, so it is not in `check`


def _integer(name: str, default: int, low: int, high: int) -> int:
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    try:
        value = int(text)
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise SettingError(f"{name}={text!r}: expected an integer from {low} to {high}")
    return value


def _choice(name: str, choices: tuple[str, ...]) -> str:
    """One of `choices`, the first of which is the default."""
    value = os.environ.get(name, "").strip() or choices[0]
    if value not in choices:
        raise SettingError(f"{name}={value!r}: expected one of {', '.join(choices)}")
    return value


def _several(name: str, choices: tuple[str, ...]) -> frozenset[str]:
    """Any of `choices`, separated by commas; by default none."""
    text = os.environ.get(name, "")
    values = frozenset(word.strip() for word in text.split(",") if word.strip())
    if not values <= frozenset(choices):
        raise SettingError(f"{name}={text!r}: expected {' and '.join(choices)} or one of them")
    return values


def _read() -> Settings:
    directory = os.environ.get("PYFUSER_CACHE_DIR", "").strip()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    default_threads = int(threads) if threads.isdigit() and int(threads) > 0 else cores or 1
    engine = _choice("PYFUSER_ENGINE", ("native", "pykokkos"))
    verify = bool(_integer("PYFUSER_VERIFY", 0, 0, 1))
    if verify and engine == "pykokkos":
        raise SettingError(
            "PYFUSER_VERIFY=1 compares bits, and PyKokkos' compiler may round otherwise: verify "
            "with PYFUSER_ENGINE=native"
        )
    check = _several("PYFUSER_CHECK", ("bounds", "races", "sync"))
    return Settings(
        verify=verify,
        check=check - {"sync"},
        debug=_integer("PYFUSER_DEBUG", 0, 0, 5),
        cache_dir=Path(directory) if directory else Path(platformdirs.user_cache_dir("pyfuser")),
        compiler=os.environ.get("PYFUSER_CXX") or os.environ.get("CXX") or "g++",
        threads=_integer("PYFUSER_THREADS", default_threads, 1, 4096),
        fastmath=bool(_integer("PYFUSER_FASTMATH", 0, 0, 1)),
        fusion=bool(_integer("PYFUSER_FUSION", 1, 0, 1)),
        calibration=bool(_integer("PYFUSER_CALIBRATION", 1, 0, 1)),
        arbitrate=bool(_integer("PYFUSER_ARBITRATE", 1, 0, 1)),
        defer=bool(_integer("PYFUSER_DEFER", 1, 0, 1)),
        frontend=_choice("PYFUSER_FRONTEND", ("auto", "embedded")),
        on=_choice("PYFUSER", ("off", "on")) == "on",
        engine=engine,
        sync="sync" in check,
    )


SETTINGS = _read()
