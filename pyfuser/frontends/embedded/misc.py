"""What is left of the API: synchronisation, printing, timing, number limits, special functions."""

from __future__ import annotations

import time
from typing import Any, NoReturn

import numpy as np

from pyfuser.frontends.embedded.data_types import resolve
from pyfuser.frontends.embedded.views import ViewType
from pyfuser.runtime.flush import finish
from pyfuser.runtime.session import TRACER
from pyfuser.support.errors import PyFuserError
from pyfuser.support.records import dataclass
from pyfuser.trace import reason


def generic_error(filename: str, lineno: int | str, error: str, exit_message: str) -> NoReturn:
    """Report an error of the user's program, as an exception."""
    raise PyFuserError(f"{filename}:{lineno}: {error}: {exit_message}")


def fence() -> None:
    """Wait until every call made so far has run, on the host and on GPUs."""
    finish(reason.FENCE)


def flush() -> None:
    """Run every call that was recorded."""
    TRACER.flush(reason.FLUSH)


def finalize() -> None:
    """Run every call that was recorded; the engine needs no shutting down."""
    TRACER.flush(reason.FINALIZE)


def printf(fmt_str: str, *args: Any) -> None:
    """C's printf."""
    print(fmt_str % args, end="")


class Timer:
    """A stopwatch. Calls that are recorded but have not run take no time: `pk.fence()` first."""

    def __init__(self) -> None:
        self.start_time = time.perf_counter()

    def seconds(self) -> float:
        """Seconds since it was made or reset."""
        return time.perf_counter() - self.start_time

    def reset(self) -> None:
        """Start again."""
        self.start_time = time.perf_counter()


@dataclass
class info_type_attrs:
    """The limits of a number type."""

    bits: int
    max: Any
    min: Any


def _element(type_or_arr: Any) -> np.dtype[Any]:
    if isinstance(type_or_arr, ViewType):
        return type_or_arr._region.dtype.numpy
    return resolve(type_or_arr)[1].numpy


def iinfo(type_or_arr: Any) -> info_type_attrs:
    """The limits of an integer type, or of a View's."""
    info = np.iinfo(_element(type_or_arr))
    return info_type_attrs(info.bits, int(info.max), int(info.min))


def finfo(type_or_arr: Any) -> info_type_attrs:
    """The limits of a floating-point type, or of a View's."""
    info = np.finfo(_element(type_or_arr))
    return info_type_attrs(info.bits, float(info.max), float(info.min))


def cyl_bessel_j0(input: float) -> float:
    """The Bessel function of the first kind of order 0: only in kernels, as in PyKokkos."""
    raise NotImplementedError("cyl_bessel_j0 can only be called in a kernel")


def cyl_bessel_j1(input: float) -> float:
    """The Bessel function of the first kind of order 1: only in kernels, as in PyKokkos."""
    raise NotImplementedError("cyl_bessel_j1 can only be called in a kernel")
