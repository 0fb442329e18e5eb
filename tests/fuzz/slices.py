"""Parts of base arrays, as texts: slices, transposes, windows that overlap, broadcasts."""

from __future__ import annotations

import random

from tests.fuzz.program import Base


def part(rng: random.Random, base: Base, end: tuple[int, ...]) -> tuple[str, bool]:
    """A part of a base that indices below `end` mostly fit, and whether it must not be written."""
    name = base.name
    if rng.random() < 0.04:
        return _special(rng, base, end)
    forms = _vector(rng, base, end) if len(base.shape) == 1 else _matrix(rng, base, end)
    return rng.choice(forms).format(name), False


def _vector(rng: random.Random, base: Base, end: tuple[int, ...]) -> list[str]:
    extent, need = base.shape[0], min(end[0], base.shape[0])
    forms = ["{0}"] * 3
    spare = extent - need
    if spare:
        start = rng.randint(1, spare)
        forms += [f"{{0}}[{start}:]", f"{{0}}[{start}:{start + need}]", f"{{0}}[:{need}]"]
    forms.append("{0}[::-1]")
    if extent >= 2 * need:
        forms += ["{0}[::2]", "{0}[1::2]", "{0}[::-2]"]
    return forms


def _matrix(rng: random.Random, base: Base, end: tuple[int, ...]) -> list[str]:
    rows, columns = base.shape
    forms = ["{0}"] * 3
    forms += ["{0}.T"] * (rng.random() < 0.3)
    forms += [
        "{0}[::-1, :]",
        f"{{0}}[{rng.randrange(rows)}]",
        f"{{0}}[:, {rng.randrange(columns)}]",
    ]
    if min(rows, columns) > max(end):
        forms += ["{0}[1:, :]", "{0}[:, 1:]"]
    return forms


def _special(rng: random.Random, base: Base, end: tuple[int, ...]) -> tuple[str, bool]:
    """What only NumPy arrays do."""
    name, extent = base.name, base.shape[0]
    if len(base.shape) == 2:
        return f"np.broadcast_to({name}[{rng.randrange(extent)}], {base.shape})", True
    step = f"{name}.strides[0]"
    return rng.choice(
        (
            (f"np.broadcast_to({name}[{rng.randrange(extent)}:][:1], ({extent},))", True),
            (f"as_strided({name}, ({extent - 1}, 2), ({step}, {step}))", False),
            (f"as_strided({name}, ({extent // 2}, 2), (2 * {step}, {step}))", False),
            (f"as_strided({name}[2:], ({extent - 2},), ({step},))", False),
        )
    )
