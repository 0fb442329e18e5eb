"""What the host does between calls: reads and writes of base arrays, other lengths."""

from __future__ import annotations

import random

from tests.fuzz.program import Base, Host

_KINDS = {"float": ("float64",), "int": ("int64", "int32")}
"""Types of arrays whose elements can take a result of a kind."""


def random_host(rng: random.Random, bases: tuple[Base, ...], results: dict[int, str]) -> Host:
    """A statement on one of the bases, or a read of a result."""
    base = rng.choice(bases)
    name, extent = base.name, base.shape[0]
    value = rng.choice(
        ("0", "1") if base.dtype == "bool" or "int" in base.dtype else ("0.5", "-1.0")
    )
    if results and rng.random() < 0.3:
        return Host(f"read(result[{rng.choice(list(results))}])")
    element = ", ".join(str(rng.randrange(length)) for length in base.shape)
    slices = ", ".join([f"1:{rng.randint(2, extent)}", *[":"] * (len(base.shape) - 1)])
    texts = [
        f"{name}[{element}] = {value}",
        f"{name}.fill({value})",
        f"np.asarray({name})[{slices}] = {value}",
        f"{name}[{slices}] = {value}",
        f"read(np.asarray({name}).flat[0])",
    ]
    fitting = [n for n, kind in results.items() if base.dtype in _KINDS.get(kind, ())]
    if fitting and rng.random() < 0.5:
        return Host(f"{name}[{element}] = result[{rng.choice(fitting)}]")
    if len(base.shape) == 1:
        texts.append(f"read({name}[{element}])")
        others = [b for b in bases if (b.shape, b.dtype) == (base.shape, base.dtype) and b != base]
        if others:
            texts.append(f"{name}[:] = {rng.choice(others).name}")
    return Host(rng.choice(texts))


def random_resize(rng: random.Random, base: Base, least: int) -> tuple[Host, tuple[int, ...]]:
    """The base with another length, and its new shape."""
    extent = rng.randint(max(least, base.shape[0] - 2), base.shape[0] + 4)
    return Host(f"{base.name} = resize({base.name}, {extent})"), (extent, *base.shape[1:])
