"""What a mask selects, and complex numbers: recorded, with NumPy's values."""

from __future__ import annotations

import shutil
import warnings
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

import pyfuser.numpy as np
from pyfuser.frontends.numpy import selected, switches
from pyfuser.frontends.numpy.memory import is_selected, region_of
from pyfuser.runtime import first_tier
from pyfuser.runtime.session import TRACER
from pyfuser.support.settings import SETTINGS
from pyfuser.trace import reason

needs_compiler = pytest.mark.skipif(
    shutil.which(SETTINGS.compiler) is None, reason="needs a C++ compiler"
)
LARGE = switches.LAZY_FROM
NUMBERS = numpy.random.default_rng(3)
X, Y = NUMBERS.normal(size=(2, LARGE))


@pytest.fixture(autouse=True)
def nothing_pending() -> Iterator[None]:
    TRACER.flush(reason.SYNC)
    selected._ASKED.clear()
    yield
    with numpy.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        TRACER.flush(reason.SYNC)


def same(function: Callable[..., Any], *arrays: Any) -> None:
    """A function does with our arrays what it does with NumPy's."""
    theirs = [array.copy() for array in arrays]
    ours = [np.array(array) for array in arrays]
    expected, found = function(numpy, *theirs), function(np, *ours)
    for one, other in zip((*theirs, expected), (*ours, found), strict=True):
        assert numpy.array_equal(numpy.asarray(one), numpy.asarray(other), equal_nan=True)


def test_an_update_through_a_mask_runs_nothing() -> None:
    x, y = np.array(X), np.array(Y)
    mask = x > 0
    x[mask] = x[mask] ** 2 * 0.5 + y[mask]
    y[mask] -= 1
    x[mask] = y[mask]
    runs = len(TRACER.calls)
    assert runs >= 8
    m = X > 0
    one, other = X.copy(), Y.copy()
    one[m] = one[m] ** 2 * 0.5 + other[m]
    other[m] -= 1
    one[m] = other[m]
    assert numpy.array_equal(x, one)
    assert numpy.array_equal(y, other)


def test_its_length_and_type() -> None:
    x = np.array(X)
    chosen = x[x > 0] * 2
    assert is_selected(chosen)
    assert chosen.dtype == numpy.float64
    assert is_selected(chosen)
    assert len(chosen) == numpy.count_nonzero(X > 0)
    assert not is_selected(chosen)
    assert numpy.array_equal(chosen, X[X > 0] * 2)


def _changed_source(m: Any, x: Any, y: Any) -> Any:
    mask = x > 0
    chosen = x[mask]
    x[...] = y
    return chosen + 1


def _changed_mask(m: Any, x: Any, y: Any) -> Any:
    mask = x > 0
    chosen = x[mask]
    m.logical_not(mask, mask)
    return chosen + 1


def _changed_between(m: Any, x: Any, y: Any) -> Any:
    mask = x > 0
    one = x[mask]
    mask[:] = y > 0
    other = x[mask]
    return one[:5] + other[:5]


def _two_masks(m: Any, x: Any, y: Any) -> Any:
    mask, other = x > 0, x <= 0
    count = min(int(mask.sum()), int(other.sum()))
    mask[...] = False
    other[...] = False
    mask[:count] = True
    other[-count:] = True
    return x[mask] + y[other]


def _stored_through_another(m: Any, x: Any, y: Any) -> Any:
    mask, other = x > -9, y > -9
    other[:7] = mask[7:14] = False
    x[other] = x[mask]
    return x


def _stored_through_a_changed_one(m: Any, x: Any, y: Any) -> Any:
    mask = x > 9
    mask[:7] = True
    chosen = x[mask] * 2
    mask[...] = False
    mask[-7:] = True
    x[mask] = chosen
    return x


def _shifted(m: Any, x: Any, y: Any) -> Any:
    mask = y[1:] > 0
    x[:-1][mask] = x[1:][mask]
    return x


def _in_place(m: Any, x: Any, y: Any) -> Any:
    mask = x > 0
    chosen = x[mask]
    again = chosen
    chosen *= 3
    x[mask] = 0
    return again + chosen


def _of_itself(m: Any, x: Any, y: Any) -> Any:
    mask = x > 0
    mask[mask] = mask[mask] & False
    return mask


def _another_type(m: Any, x: Any, y: Any) -> Any:
    mask = x > 0
    chosen = x[mask]
    x.dtype = m.int64
    return chosen * 2


def _another_shape(m: Any, x: Any, y: Any) -> Any:
    mask = x > 0
    chosen = x[mask]
    x.shape = (2, -1)
    mask.shape = (2, -1)
    return chosen + 1


def _rows(m: Any, x: Any, y: Any) -> Any:
    p, v = x.reshape(-1, 4), y.reshape(-1, 4)
    mask = p[:, 1] > 0
    v[mask] = v[mask] * 0.5 + p[mask]
    p[mask] = 2
    return v[mask, :2] * p[mask, 1:3]


def _columns(m: Any, x: Any, y: Any) -> Any:
    p = x.reshape(-1, 2)
    mask = p[:, 0] < 0
    p[mask, 0] *= -1
    chosen = p[mask, 1]
    p[mask, 1] = p[mask, 0] + 1
    p[mask, -1] = 3
    return chosen + 1


def _rows_of_two_masks(m: Any, x: Any, y: Any) -> Any:
    p = x.reshape(-1, 2)
    one, other = p[:, 0] > 9, p[:, 1] > 9
    one[:8] = other[8:16] = True
    p[one] = p[other]
    return p[one, 1] - p[other, 0]


def _of_its_other_half(m: Any, x: Any, y: Any) -> Any:
    flags = m.ones(len(x), dtype=bool)
    flags[3] = False
    mask = flags[::-1]
    flags[mask] = flags[mask] ^ True
    mask[flags] = False
    return flags


def _bounded(m: Any, x: Any, y: Any) -> Any:
    mask = m.abs(x) > 0.5
    x[mask] = m.sqrt(m.abs(x[mask])) + m.maximum(y[mask], 0)
    return x[mask].sum() > 0


@pytest.mark.parametrize(
    "function",
    [
        _changed_source, _changed_mask, _changed_between, _two_masks, _stored_through_another,
        _stored_through_a_changed_one, _shifted, _in_place, _of_itself, _bounded,
        _another_type, _another_shape, _rows, _columns, _rows_of_two_masks,
        _of_its_other_half,
    ],
)  # fmt: skip
def test_others_change_what_it_was(function: Callable[..., Any]) -> None:
    same(function, X, Y)


def test_another_type_of_the_mask_is_another_key() -> None:
    x = np.array(X)
    mask = x > 0
    chosen = x[mask]
    mask.dtype = numpy.int8
    assert len(chosen) == numpy.count_nonzero(X > 0)
    chosen = x[x > 0]
    with pytest.raises(ValueError, match="shape mismatch"):
        x[mask] = chosen


def test_an_error_of_another_call_loses_nothing() -> None:
    x, zeros = np.array(X), np.array(numpy.zeros(LARGE))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chosen, other = x[x > 0], x[x > 1]
        with pytest.raises(RuntimeWarning):
            1 / zeros
            len(chosen)
    assert len(chosen) == numpy.count_nonzero(X > 0)
    assert numpy.array_equal(other, X[X > 1])


def test_a_selection_keeps_no_calls() -> None:
    x = np.array(X)
    chosen = x[x > 0] * 2
    y = np.array(Y) + 1
    lives = weakref.ref(y)
    TRACER.flush(reason.SYNC)
    del y
    assert lives() is None
    assert is_selected(chosen)


def test_a_call_behind_may_write_any_of_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    x, other = np.array(X), np.array(Y)
    mine, others = region_of(x), region_of(other)

    def unwritten(position: int, *arguments: Any) -> bool:
        call = SimpleNamespace(position=position, arguments=arguments)
        monkeypatch.setattr(selected, "TRACER", SimpleNamespace(calls=[call]))
        return selected._is_unwritten(x, 7)

    assert not unwritten(8, others, mine)
    assert not unwritten(8, mine)
    assert unwritten(8, others, 2.5)
    assert unwritten(7, mine)


def test_columns_that_a_mask_selects_are_recorded() -> None:
    p = np.array(X.reshape(-1, 2).repeat(2, 0))
    mask = p[:, 0] > 0
    chosen = p[mask, 1]
    assert is_selected(chosen)
    p[mask, 1] = chosen * 2
    assert is_selected(p[mask])
    assert len(TRACER.calls) >= 7
    with pytest.raises(IndexError):
        p[mask, 2]
    with pytest.raises(ValueError, match="broadcast"):
        p[mask] * p[mask, 1]


def test_lengths_that_differ_are_an_error() -> None:
    x = np.array(X)
    one, other = x > 0, x > 1
    with pytest.raises(ValueError, match="broadcast"):
        x[one] + x[other]
    with pytest.raises(ValueError, match="assign"):
        x[one] = x[other]
    whole = np.array(numpy.arange(LARGE))
    chosen = whole[one]
    with pytest.raises(TypeError, match="cast"):
        chosen /= 2


def test_what_others_ask_for_is_gathered_at_once() -> None:
    x = np.array(X)
    mask = x > 0
    states = []
    for _ in range(selected.TRIES + 2):
        chosen = x[mask]
        states.append(is_selected(chosen))
        chosen.sum()
    assert states == [True] * selected.TRIES + [False] * 2


def test_no_array_of_the_masks_shape_is_kept() -> None:
    x = np.array(X)
    mask = x > 0
    kept = []
    for _ in range(3):
        selected._ASKED.clear()
        kept.append(x[mask])
        TRACER.flush(reason.SYNC)
    x[mask] += 1
    assert [is_selected(chosen) for chosen in kept] == [False] * 3
    assert all(numpy.array_equal(chosen, X[X > 0]) for chosen in kept)


def test_nothing_warns_of_what_a_mask_leaves_out() -> None:
    x = np.array(X)
    mask = x > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x[mask] = np.sqrt(x[mask])
        TRACER.flush(reason.SYNC)


def test_conditions_of_any_type(lazily: Callable[[str], None]) -> None:
    lazily("interpret")
    z = X[:40] + 1j * Y[:40]
    z[3] = 0
    for condition in (z, X[:40], (X[:40] > 0).astype("i1")):
        same(lambda m, a, c: m.where(c, a, -a), z, condition)


def _complex(m: Any, x: Any, y: Any) -> Any:
    z, w = x + 1j * y, y - 1j * x
    z[3:5] = 0
    w[4:6] = 0
    real = m.where(x > 0, z * w, z / (w + 1)) * m.conj(z) - z**2 * 2.5
    return m.where(real == z, 0, real * (1 - 2j)) + (2j - x) * z.real + z.imag * w


@pytest.mark.parametrize("kind", ["f8", "f4"])
@pytest.mark.parametrize("tier", ["numpy", "interpret"])
def test_complex_numbers(tier: str, kind: str, lazily: Callable[[str], None]) -> None:
    lazily(tier)
    with numpy.errstate(all="ignore"):
        same(_complex, *NUMBERS.normal(size=(2, 40)).astype(kind))


@needs_compiler
@pytest.mark.parametrize("kind", ["c16", "c8"])
def test_kernels_compute_complex_numbers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_tier, "runs_here", lambda trace, calls: False)
    z = (X + 1j * Y).astype(kind)
    for function in (
        lambda a: a / (1 + 2.1j),
        lambda a: a * (1 + 2.1j) + a,
        lambda a: (a * a - 1) / (a + 2j) * a.conj(),
    ):
        found = numpy.asarray(function(np.array(z)))
        assert found.tobytes() == function(z).tobytes()


def test_products_of_complex_numbers_are_recorded() -> None:
    x = np.array(X + 1j * Y)
    y = x * x + 2j
    assert len(TRACER.calls) == 2
    assert numpy.array_equal(y, (X + 1j * Y) * (X + 1j * Y) + 2j)
