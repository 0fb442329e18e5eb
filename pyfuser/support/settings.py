"""Every PYFUSER_* setting, in one table, read once."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from pyfuser.support import tracebacks
from pyfuser.support.errors import SettingError, SettingWarning, close, warn
from pyfuser.support.records import dataclass


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
    PYFUSER_CACHE_SIZE      MiB that they, and plans, may take there                 1024
    PYFUSER_CXX             the C++ compiler                                         $CXX or g++
    PYFUSER_THREADS         threads of the OpenMP execution space                    all cores
    PYFUSER_SPACE           Cuda or HIP: the space of policies that name none, and   OpenMP
                            of what pyfuser.numpy records
    PYFUSER_FASTMATH        1: let the compiler change floating-point values         0
    PYFUSER_FUSION          0: decorated workunits are not traced                    1
    PYFUSER_CALIBRATION     0: plan with guessed constants, whatever was measured    1
    PYFUSER_ARBITRATE       0: never try what the model doubts, plan at any cost     1
    PYFUSER_EXTENSION       0: record and replay calls in Python, not compiled       1
    PYFUSER_WITHOUT         passes that are left out: names in pyfuser/pipeline.py   nothing
    PYFUSER                 on: trace every call, as `pyfuser run` does              off
    PYFUSER_FRONTEND        embedded: never use an installed PyKokkos; or auto       auto
    PYFUSER_ENGINE          who runs fused kernels: native, or an installed pykokkos native
    PYFUSER_NUMPY           eager: pyfuser.numpy computes everything at once         lazy
    PYFUSER_NUMPY_LAZY      always: it records also the smallest operations          auto
    PYFUSER_NUMPY_EXACT     1: NumPy's bits in functions such as exp and in all sums 0
    ======================  =======================================================  ==========

    1, true, yes and on are one, 0, false, no and off too, in any case.
    """

    verify: bool
    check: frozenset[str]
    debug: int
    directory: Path | None
    compiler: str
    threads: int
    fastmath: bool
    fusion: bool
    calibration: bool
    arbitrate: bool
    extension: bool
    frontend: str
    on: bool = False
    engine: str = "native"
    without: frozenset[str] = frozenset()  # checked by `pipeline`
    sync: bool = False  # of PYFUSER_CHECK; fuses as ever, so it is not in `check`
    numpy_eager: bool = False
    numpy_lazy: bool = False
    numpy_exact: bool = False
    cache_size: int = 1024  # MiB
    space: str = "OpenMP"

    @property
    def cache_dir(self) -> Path:
        """Where compiled kernels are kept: `directory`, or the user's caches."""
        if self.directory is not None:
            return self.directory
        import platformdirs  # with much of the standard library

        return Path(platformdirs.user_cache_dir("pyfuser"))


#: Every name that something reads; the last one is of `pyfuser compare`.
KNOWN = frozenset(
    f"PYFUSER{name}"
    for name in (
        "", "_VERIFY", "_CHECK", "_DEBUG", "_CACHE_DIR", "_CXX", "_THREADS", "_FASTMATH",
        "_FUSION", "_CALIBRATION", "_ARBITRATE", "_EXTENSION", "_FRONTEND", "_ENGINE",
        "_WITHOUT", "_SPACE", "_NUMPY", "_NUMPY_LAZY", "_NUMPY_EXACT", "_CACHE_SIZE",
        "_PYKOKKOS_PYTHON",
    )
)  # fmt: skip

_SWITCH = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(
    ("0", "false", "no", "off"), False
)


_SPACES = {name.lower(): name for name in ("OpenMP", "Serial", "Cuda", "HIP")}


def _text(name: str) -> str:
    """What a variable is set to, in lower case; empty if it is not set."""
    return os.environ.get(name, "").strip().lower()


def _wrong(name: str, allowed: str) -> SettingError:
    return SettingError(f"{name}={os.environ[name]!r}: expected {allowed}")


def _switch(name: str, default: bool) -> bool:
    text = _text(name)
    if text and text not in _SWITCH:
        raise _wrong(name, "1, true, yes or on, or 0, false, no or off")
    return _SWITCH.get(text, default)


def _integer(name: str, default: int, low: int, high: int) -> int:
    text = _text(name)
    if not text:
        return default
    try:
        value = int(text)
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise _wrong(name, f"an integer from {low} to {high}")
    return value


def _choice(name: str, choices: tuple[str, ...]) -> str:
    """One of `choices`, the first of which is the default."""
    value = _text(name) or choices[0]
    if value not in choices:
        raise _wrong(name, f"one of {', '.join(choices)}")
    return value


def _several(name: str, choices: tuple[str, ...]) -> frozenset[str]:
    """Any of `choices`, separated by commas; by default none."""
    values = frozenset(word.strip() for word in _text(name).split(",") if word.strip())
    if not values <= frozenset(choices):
        raise _wrong(name, f"one or more of {', '.join(choices)}, with commas between them")
    return values


def _read() -> Settings:
    directory = os.environ.get("PYFUSER_CACHE_DIR", "").strip()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    default_threads = int(threads) if threads.isdigit() and int(threads) > 0 else cores or 1
    engine = _choice("PYFUSER_ENGINE", ("native", "pykokkos"))
    verify, fastmath = _switch("PYFUSER_VERIFY", False), _switch("PYFUSER_FASTMATH", False)
    if verify and fastmath:
        raise SettingError(
            "PYFUSER_VERIFY=1 compares bits, which PYFUSER_FASTMATH=1 lets the compiler change: "
            "verify without it"
        )
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
        directory=Path(directory) if directory else None,
        compiler=os.environ.get("PYFUSER_CXX") or os.environ.get("CXX") or "g++",
        threads=_integer("PYFUSER_THREADS", default_threads, 1, 4096),
        fastmath=fastmath,
        fusion=_switch("PYFUSER_FUSION", True),
        calibration=_switch("PYFUSER_CALIBRATION", True),
        arbitrate=_switch("PYFUSER_ARBITRATE", True),
        extension=_switch("PYFUSER_EXTENSION", True),
        frontend=_choice("PYFUSER_FRONTEND", ("auto", "embedded")),
        on=_switch("PYFUSER", False),
        engine=engine,
        without=frozenset(_text("PYFUSER_WITHOUT").replace(",", " ").split()),
        sync="sync" in check,
        numpy_eager=_choice("PYFUSER_NUMPY", ("lazy", "eager")) == "eager",
        numpy_lazy=_choice("PYFUSER_NUMPY_LAZY", ("auto", "always")) == "always",
        numpy_exact=_switch("PYFUSER_NUMPY_EXACT", False),
        space=_SPACES[_choice("PYFUSER_SPACE", tuple(_SPACES))],
        cache_size=_integer("PYFUSER_CACHE_SIZE", 1024, 1, 1 << 30),
    )


def _unknown() -> list[str]:
    """A message for each variable that looks like a setting and is none."""
    names = sorted(n for n in os.environ if _looks_like_one(n))
    return [f"no setting is called {name}{close(name.upper(), KNOWN)}" for name in names]


def _looks_like_one(name: str) -> bool:
    """Whether a name that is no setting begins like one, or nearly is one."""
    upper = name.upper()
    if name in KNOWN or not upper.startswith("PYFUS"):
        return False
    import difflib

    known = [known for known in KNOWN if "_" in known]
    return upper.startswith("PYFUSER_") or bool(difflib.get_close_matches(upper, known, 1, 0.9))


def _is_command() -> bool:
    """Whether the process is the command `pyfuser` or `python -m pyfuser`."""
    return Path(sys.argv[0]).stem == "pyfuser" or ("-m", "pyfuser") in zip(
        sys.orig_argv, sys.orig_argv[1:], strict=False
    )


def refuse(error: SettingError) -> NoReturn:
    """Raise an error so that it is shown in one line; as a command, end with the code 2."""
    if _is_command():
        print(f"pyfuser: {error}", file=sys.stderr)
        raise SystemExit(2)
    tracebacks.install()
    raise error.with_traceback(None) from None


def _load() -> Settings:
    for message in _unknown():
        if _is_command():
            print(f"pyfuser: {message}", file=sys.stderr)
        else:
            tracebacks.install()  # where a filter makes it an error
            warn(message, *tracebacks.users_line(), SettingWarning)
    try:
        return _read()
    except SettingError as error:
        refuse(error)


SETTINGS = _load()
