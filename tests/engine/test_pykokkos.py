"""What is given to PyKokkos to translate, and what is not; no PyKokkos is needed."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pykokkos as pk
import pytest

from pyfuser.engine import pykokkos
from pyfuser.engine.engine import Native, PyKokkos
from pyfuser.engine.pykokkos import Connection, refusal
from pyfuser.support.errors import PyFuserWarning
from pyfuser.trace.gate import Ran
from pyfuser.trace.memory import Array, Buffer, Handle
from tests.codegen.build import Arguments, Case, bound
from tests.codegen.build import case as widened_case

ENGINE = PyKokkos(Native())
case = partial(widened_case, widened=False)


def scale(i, y, x, a):
    y[i] = a * x[i]


def total(i, acc, x):
    acc += x[i]


def twos(i, acc):
    acc += 2.0


def running(i, acc, last, y, x):
    acc += x[i]
    if last:
        y[i] = acc


def keyword(i, new, template):
    new[i] = template[i]


def added(i, y, x):
    pk.atomic_add(y, [0], x[i])


def subtracted(i, y, x):
    pk.atomic_sub(y, [0], x[i])


def rooted(i, y, x):
    y[i] = sqrt(x[i])  # noqa: F821 - a function of the language


def turned(i, y, x):
    y[i] = radians(x[i])  # noqa: F821


def spoken(i, y, x):
    pk.printf("%d", i)


def flat(i, j, y, x):
    y[i] = x[i]


def arrays() -> list[Any]:
    return [np.zeros(4), np.arange(4.0)]


def values() -> list[Any]:
    return [np.arange(1.0, 5.0)]


@pytest.mark.parametrize(
    ("function", "extents", "pattern", "arguments", "why"),
    [
        (scale, [4], "for", lambda: [*arrays(), 2.0], None),
        (total, [4], "reduce", values, None),
        (running, [4], "scan", arrays, "parallel_scan"),
        (added, [4], "for", arrays, None),
        (subtracted, [4], "for", arrays, "'-'"),
        (rooted, [4], "for", arrays, None),
        (turned, [4], "for", arrays, "radians"),
        (spoken, [4], "for", arrays, "Eval"),
        (flat, [4, 1], "for", arrays, "MDRangePolicy"),
        (scale, [4], "for", lambda: [np.zeros(4), np.ones(4, bool), 2.0], "arrays of bool"),
        (scale, [4], "for", lambda: [np.zeros(4, complex), np.zeros(4), 2.0], "complex"),
        (total, [4], "reduce", values, None),
    ],
)
def test_what_pykokkos_is_given(
    function: Any, extents: list[int], pattern: str, arguments: Arguments, why: str | None
) -> None:
    workunit = case(function, extents, arguments, pattern).kernel.workunit
    found = refusal(pattern, workunit)
    assert (found is None) if why is None else (found is not None and why in found)


def test_pykokkos_itself_runs_what_it_is_not_given_but_no_calls_over_two_indices() -> None:
    for function, extents, left in ((turned, [4], True), (flat, [4, 1], False)):
        kernel = case(function, extents, arrays, "for").kernel
        assert (ENGINE.refusal("for", kernel.workunit) is not None) is left
        (launchable,) = ENGINE.prepare([((kernel,), ())])
        assert not isinstance(launchable, pykokkos.Launchable)  # natively, if it is recorded


def by_python(function: Any, pattern: str, space: Any, arguments: dict[str, Any]) -> Any:
    """What PyKokkos is asked, done by Python: the source is plain Python, too."""
    _, begin, end = space
    total = pk.Acc(0.0)
    for i in range(begin, end):
        function(i, *([total] if pattern == "reduce" else []), **arguments)
    return total.val if pattern == "reduce" else None


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(Connection, "dispatch", staticmethod(by_python))


def run(made: Case) -> tuple[list[Any], tuple[Any, ...]]:
    (launchable,) = ENGINE.prepare([((made.kernel,), ())])
    assert isinstance(launchable, pykokkos.Launchable)
    return made.run(launchable)


@pytest.mark.usefixtures("connected")
def test_arguments_come_under_their_names() -> None:
    found, results = run(case(scale, [4], lambda: [*arrays(), 3.0]))
    assert found[0].tolist() == [0.0, 3.0, 6.0, 9.0]
    assert results == ()


@pytest.mark.usefixtures("connected")
def test_names_that_cpp_has_for_itself() -> None:
    (launchable,) = ENGINE.prepare([((case(keyword, [4], arrays).kernel,), ())])
    assert isinstance(launchable, pykokkos.Launchable)
    assert not {"new", "template"} & {*launchable.names}


@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize(
    ("function", "arguments", "sum_"), [(total, values, 10.0), (twos, list, 8.0)]
)
def test_a_reduction_has_an_argument(function: Any, arguments: Arguments, sum_: float) -> None:
    made = case(function, [4], arguments, "reduce")
    (launchable,) = ENGINE.prepare([((made.kernel,), ())])
    ran = Ran()
    assert launchable.run(made.kernel.space, bound(made.arguments()), ran) == (sum_,)
    assert [launchable.values(result) for status, result in ran if status == 0] == [(sum_,)]
    assert pykokkos.UNUSED in launchable.names  # type: ignore[attr-defined]


@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize("end", [2, 1])
def test_no_iterations(end: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "dispatch", None)
    made = case(total, [end], values, "reduce", begin=[2])
    assert run(made)[1] == (0,)


@pytest.mark.parametrize("error", [SystemExit(1), RuntimeError("no cast")])
def test_what_pykokkos_rejects_runs_natively(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(Connection, "dispatch", staticmethod(reject))
    made = case(total, [4], values, "reduce")
    (launchable,) = ENGINE.prepare([((made.kernel,), ())])
    for turn in range(2):
        ran = Ran()
        if turn:
            found = launchable.run(made.kernel.space, bound(made.arguments()), ran)
        else:
            with pytest.warns(PyFuserWarning, match="the native engine does"):
                found = launchable.run(made.kernel.space, bound(made.arguments()), ran)
        assert found == (10.0,)
        assert [launchable.values(result) for _, result in ran] == [(10.0,)]


def test_what_it_cannot_say_is_prepared_natively() -> None:
    made = case(running, [4], arrays, "scan")
    (launchable,) = ENGINE.prepare([((made.kernel,), ())])
    assert not isinstance(launchable, pykokkos.Launchable)
    assert made.run(launchable)[0][0].tolist() == [0.0, 1.0, 3.0, 6.0]


def test_lent_memory_is_reached_through_its_handle_only() -> None:
    memory: Array = np.zeros(32, np.uint8)
    handle = Handle()
    buffer = Buffer.lend(memory, handle)
    assert buffer.allocated
    assert not buffer.external
    assert buffer.reachable
    del handle
    assert not buffer.reachable
    buffer.expose()
    assert buffer.reachable
    del buffer  # and does not give to the pool what was lent
    memory[:] = 1
