"""Numbers for people, in the unit that suits them."""

from __future__ import annotations

from pyfuser.support.caches import cached


def seconds(value: float) -> str:
    """A time, with three digits."""
    unit, factor = time_unit(value)
    return f"{digits(value * factor)} {unit}"


def digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def time_unit(value: float) -> tuple[str, float]:
    """The unit of a time, and how many of it make a second."""
    if value >= 1.0:
        return "s", 1.0
    return ("ms", 1e3) if value >= 1e-3 else ("us", 1e6)


@cached(256)
def size(count: float) -> str:
    """A number of bytes."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"


def count(number: int, noun: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
