"""Kernels for several processors, emitted on any: what differs is decided before there is text."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.cpu.unit import emit
from pyfuser.codegen.kernel import spec_of
from pyfuser.tuning.target import Target
from pyfuser.tuning.thresholds import DEFAULT, Tuning
from tests.codegen.build import Case, case
from tests.vendors import functions

N = 1000
TARGETS = {n: Target(vector_bytes=n, vector_maths=functions("exp", "sin")) for n in (16, 32, 64)}


def total(i, acc, x):
    acc += x[i]


def waves(i, y, x):
    y[i] = math.sin(x[i])


def turned(i, j, y, x):
    y[i, j] = x[j, i]


def arrays(*shape: int) -> list[Any]:
    return [np.zeros(shape), np.ones(shape)]


SUM = case(total, [N], lambda: [np.ones(N)], "reduce")
WAVES = case(waves, [N], lambda: arrays(N))
TURNED = case(turned, [300, 300], lambda: arrays(300, 300))


def text(given: Case, target: Target, tuning: Tuning = DEFAULT) -> str:
    return emit(spec_of(given.kernel, target=target, tuning=tuning))


@pytest.mark.parametrize("given", [SUM, WAVES, TURNED], ids=["sum", "waves", "turned"])
@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: str(target.vector_bytes))
def test_nothing_is_left_to_the_preprocessor(given: Case, target: Target) -> None:
    assert not any(name in text(given, target) for name in ("__AVX", "PF_INTEL", "#else"))


def test_sums_have_the_vectors_of_the_target() -> None:
    for size, target in TARGETS.items():
        assert f"vector_size({size})" in text(SUM, target)
        other = {16: 32, 32: 64, 64: 16}[size]
        assert f"vector_size({other})" not in text(SUM, target)


def test_functions_are_called_by_the_widest_vectors_there_are() -> None:
    assert '"_ZGVeN8v_sin"' in text(WAVES, TARGETS[64])
    assert '"_ZGVdN4v_sin"' in text(WAVES, TARGETS[32])
    assert "_ZGV" not in text(WAVES, Target(64))


def test_tiles_are_longer_where_that_was_measured() -> None:
    assert "_block += 64) {" in text(TURNED, Target(64))
    assert "_block += 128) {" in text(TURNED, Target(64, intel=True))
    assert "_block += 5) {" in text(TURNED, Target(64), Tuning(along=5))


def test_kernels_for_two_targets_are_two() -> None:
    one, other = (spec_of(SUM.kernel, target=target) for target in (TARGETS[32], TARGETS[64]))
    assert one != other
    assert one == spec_of(SUM.kernel, target=TARGETS[32])
    assert one != spec_of(SUM.kernel, target=TARGETS[32], tuning=Tuning())


def test_every_number_says_what_it_is() -> None:
    for number in fields(Tuning):
        assert number.metadata["unit"] and number.metadata["meaning"], number.name
