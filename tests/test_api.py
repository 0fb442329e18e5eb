from __future__ import annotations

import inspect
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pyfuser
from pyfuser.frontends import modes
from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.report import Explanation, build
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.errors import ArgumentError, WorkunitWarning
from pyfuser.support.places import short_path
from pyfuser.trace.tracer import MAX_CALLS


@pk.workunit
def add(i, x, value):
    x[i] += value


@pk.workunit
def total_of(i, acc, x):
    acc += x[i]


@pyfuser.fuse
@pk.workunit
def over(i, x):
    x[i] += 1


@pk.workunit
@pyfuser.fuse
def under(i, x):
    x[i] += 1


@pyfuser.fuse()
@pk.workunit(x=pk.ViewTypeInfo(trait=pk.Unmanaged))
def with_parentheses(i, x):
    x[i] += 1


@pytest.fixture
def x(interpreted):
    return pk.View([3], pk.double)


@pytest.fixture(autouse=True)
def switches(monkeypatch):
    monkeypatch.setattr(modes.SWITCHES, "everywhere", None)
    monkeypatch.setattr(modes.SWITCHES, "allowed", True)


def was_traced() -> bool:
    """Whether a call of an unmarked workunit is recorded here."""
    before = len(TRACER.calls)
    pk.parallel_for(1, add, x=pk.View([1]), value=1.0)
    return len(TRACER.calls) == before + 1


@pytest.mark.parametrize("workunit", [over, under, with_parentheses])
def test_a_marked_workunit_is_recorded(x, interpreted, workunit):
    pk.parallel_for(3, workunit, x=x)
    assert interpreted.ran == []
    assert pyfuser.pending() == (f"{workunit.__name__} ({__file__}:{line_above()})",)
    np.testing.assert_array_equal(x, [1, 1, 1])
    assert pyfuser.pending() == ()


def line_above() -> int:
    return sys._getframe(1).f_lineno - 2


@pytest.mark.parametrize("workunit", [over, under, with_parentheses])
def test_a_marked_workunit_is_a_function(x, workunit):
    workunit(2, x)
    assert x[2] == 1
    assert inspect.isfunction(workunit) and inspect.isfunction(workunit.__wrapped__)
    assert list(inspect.signature(workunit).parameters) == ["i", "x"]


def test_marking_leaves_the_original_unmarked(x, interpreted):
    marked = pyfuser.fuse(add)
    pk.parallel_for(3, add, x=x, value=1.0)
    assert interpreted.ran == ["add"]
    pk.parallel_for(3, marked, x=x, value=1.0)
    assert interpreted.ran == ["add"]


@pytest.mark.parametrize("thing", [3, len, [add], type("C", (), {})])
def test_only_functions_can_be_marked(thing):
    with pytest.raises(ArgumentError, match="not a Python function"):
        pyfuser.fuse(thing)


def test_an_eager_call_first_runs_what_is_pending(x, interpreted):
    pk.parallel_for(3, over, x=x)
    pk.parallel_for(3, add, x=x, value=2.0)
    assert interpreted.ran == ["over", "add"]


def test_a_fusing_block_runs_its_calls_at_its_end(x, interpreted):
    with pyfuser.fusing():
        pk.parallel_for(3, add, x=x, value=1.0)
        assert interpreted.ran == []
    assert interpreted.ran == ["add"]


def test_a_block_that_raises_still_runs_what_was_recorded(x, interpreted):
    with pytest.raises(KeyError), pyfuser.fusing():
        pk.parallel_for(3, add, x=x, value=1.0)
        raise KeyError
    assert interpreted.ran == ["add"]
    assert not was_traced()


def test_an_unfused_block_runs_what_is_pending_and_then_each_call(x, interpreted):
    pk.parallel_for(3, over, x=x)
    with pyfuser.unfused():
        assert interpreted.ran == ["over"]
        pk.parallel_for(3, over, x=x)
        assert interpreted.ran == ["over", "over"]


def test_the_innermost_block_counts(interpreted):
    block = pyfuser.fusing()
    with block:
        assert was_traced()
        with pyfuser.unfused():
            assert not was_traced()
            with block:
                assert was_traced()
            assert not was_traced()
        assert was_traced()
    assert not was_traced()


def test_enable_and_disable_are_for_the_process(x, interpreted):
    pyfuser.enable()
    assert was_traced()
    with pyfuser.unfused():
        assert not was_traced()
    pk.parallel_for(3, over, x=x)
    pyfuser.disable()
    assert interpreted.ran[-1] == "over"
    pk.parallel_for(3, over, x=x)
    assert pyfuser.pending() == ()
    with pyfuser.fusing():
        assert was_traced()


def test_a_block_is_for_its_own_thread(interpreted):
    seen = []
    with pyfuser.fusing():
        thread = threading.Thread(target=lambda: seen.append(modes.traced(False)))
        thread.start()
        thread.join()
        assert modes.traced(False)
    assert seen == [False]


def test_the_setting_forbids_tracing(x, interpreted, monkeypatch):
    monkeypatch.setattr(modes.SWITCHES, "allowed", False)
    pk.parallel_for(3, over, x=x)
    with pyfuser.fusing():
        result = pk.parallel_reduce(3, total, x=x)
    assert (result, type(result)) == (3.0, float)


@pyfuser.fuse
@pk.workunit
def total(i, acc, x):
    acc += x[i]


def test_sync_of_something_runs_only_what_it_needs(x, interpreted):
    pk.parallel_for(3, over, x=x)
    pyfuser.sync(pk.View([2]), np.zeros(3))
    assert interpreted.ran == []
    pyfuser.sync(x)
    assert interpreted.ran == ["over"]
    array = np.zeros(3)
    pk.parallel_for(3, over, x=array)
    pyfuser.sync(array[1:])
    assert array.sum() == 3
    pyfuser.sync(pk.parallel_reduce(3, total, x=x))
    assert pyfuser.pending() == ()


@pytest.mark.parametrize("synchronise", [pyfuser.sync, pk.fence, pk.flush, pk.finalize])
def test_ways_to_run_everything(x, interpreted, synchronise):
    pk.parallel_for(3, over, x=x)
    synchronise()
    assert interpreted.ran == ["over"]


# --------------------------------------------------------------------------- processes

PROGRAM = """
import os, sys
import numpy as np
import pyfuser, pykokkos as pk
from pyfuser.runtime.session import TRACER

class Engine:
    def flush(self, tracer):
        for call in list(tracer.calls):
            os.write(1, b"ran ")
            tracer.remove([call])

TRACER.flush_function = Engine().flush

@pyfuser.fuse
@pk.workunit
def over(i, x):
    x[i] += 1

pk.parallel_for(3, over, x=np.zeros(3))
"""


def run(tmp_path: Path, program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "program.py"
    file.write_text(program)
    root = Path(__file__).parents[1]
    return subprocess.run(
        [sys.executable, file],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin", **environment},
    )


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise KeyError", "def f(): f()\nf()"])
def test_what_was_recorded_runs_before_the_process_ends(tmp_path, end):
    assert run(tmp_path, PROGRAM + end).stdout == "ran "


def test_a_fork_does_not_run_what_is_pending_twice(tmp_path):
    end = "pid = os.fork()\nif pid: os.waitpid(pid, 0)\n"
    assert run(tmp_path, PROGRAM + end).stdout == "ran "


FAKE = {"pykokkos/__init__.py": "", "pykokkos/interface.py": ""}


@pytest.mark.parametrize(
    "program, setting, expected",
    [
        ("import pyfuser, pykokkos; print(pykokkos.__name__)", "auto", "pykokkos"),
        ("import pyfuser, pykokkos; print(pykokkos.__name__)", "embedded", "pyfuser."),
        ("import pykokkos, pyfuser; print('done')", "auto", "done"),
        ("import pykokkos, pyfuser", "embedded", "import pyfuser before pykokkos"),
        ("import pyfuser", "other", "PYFUSER_FRONTEND='other'"),
    ],
)
def test_an_installed_pykokkos_is_left_alone_unless_asked(tmp_path, program, setting, expected):
    package = tmp_path / "pykokkos"
    package.mkdir()
    (package / "__init__.py").write_text("")
    result = run(tmp_path, program, PYFUSER_FRONTEND=setting)
    assert expected in result.stdout + result.stderr


def test_importing_does_not_load_slow_packages(tmp_path):
    program = "import sys, pyfuser\nprint(*({'islpy', 'rich', 'matplotlib'} & set(sys.modules)))"
    assert run(tmp_path, program).stdout.strip() == ""


def test_explain_tells_what_launches_took() -> None:
    x = pk.View([100], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(100, add, x=x, value=1.0)
        pk.parallel_for(100, add, x=x, value=1.0)
    (group,) = pyfuser.explain().groups
    assert group.measured is not None and group.measured > 0.0
    assert 0.0 < group.cost.modelled < group.cost.modelled_unfused
    assert "\n    measured " in str(pyfuser.explain())


def test_the_value_of_explain_is_the_report() -> None:
    """In an interactive session nobody prints it."""
    x = pk.View([100], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(100, add, x=x, value=1.0)
    report = pyfuser.explain()
    assert repr(report) == str(report)
    assert repr(report).startswith("1 call ran as 1 kernel\n")


def test_explain_says_how_to_record(monkeypatch: pytest.MonkeyPatch) -> None:
    SESSION.flushes.clear()
    SESSION.unrecorded.clear()
    text = str(pyfuser.explain())
    assert text.startswith("nothing has been recorded yet")
    for way in ("@pyfuser.fuse", "pyfuser.fusing()", "`pyfuser run script.py`", "`pyfuser.numpy`"):
        assert way in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    assert "nothing has been recorded yet" in pyfuser.explain()._repr_html_()
    checked = replace(build.SETTINGS, check=frozenset({"bounds"}))
    monkeypatch.setattr(build, "SETTINGS", checked)
    assert "with PYFUSER_CHECK every call runs by itself" in str(pyfuser.explain())


def line_here() -> int:
    """The number of the caller's line."""
    return sys._getframe(1).f_lineno


def test_explain_tells_what_a_flush_ran_for() -> None:
    x = pk.View([100], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(100, add, x=x, value=1.0)
        x[0], line = 5.0, line_here()
        where = f"{short_path(__file__)}:{line}"
        (asked,) = pyfuser.explain().asked
        assert (asked.file, asked.line, asked.why) == (__file__, line, "a View is read or written")
        assert f"launched at {where}: a View is read or written" in unwrapped(pyfuser.explain())
        total = pk.parallel_reduce(100, total_of, x=x)
        value, line = float(total), line_here()
        assert value == 104.0
        (asked,) = pyfuser.explain().asked
        assert (asked.line, asked.why) == (line, "a result is read")
        for _ in range(2):
            pk.parallel_for(100, add, x=x, value=1.0)
            pyfuser.sync()
        report = pyfuser.explain(2)
    assert [(a.why, a.times) for a in report.asked] == [("pyfuser.sync()", 2)]
    assert "launched 2 times at " in unwrapped(report)


def unwrapped(report: Explanation) -> str:
    """The text in one line."""
    return " ".join(str(report).split())


def test_explain_tells_that_no_more_calls_fit() -> None:
    x = pk.View([4], pk.double)
    with pyfuser.fusing():
        for _ in range(MAX_CALLS + 1):
            pk.parallel_for(4, add, x=x, value=1.0)
        assert len(pyfuser.pending()) == 1
        asked = pyfuser.explain(2).asked
    assert [a.why for a in asked] == ["the list of recorded calls was full", "pyfuser.explain()"]


def test_explain_tells_how_many_runs_came_before() -> None:
    x = pk.View([100], pk.double)
    SESSION.flushes.clear()
    for step in range(3):
        with pyfuser.fusing():
            pk.parallel_for(100, add, x=x, value=1.0)
        text = str(pyfuser.explain())
        assert text.startswith("1 call ran as 1 kernel\n")
        runs = {1: "1 run", 2: "2 runs"}.get(step)
        told = f"{runs} before: see pyfuser.explain(flushes={step + 1})"
        assert (told in text) == (step > 0)
        assert step == 0 or told in pyfuser.explain()._repr_html_()
    assert "before: see" not in str(pyfuser.explain(flushes=3))
    assert "1 run before: see pyfuser.explain(flushes=3)" in str(pyfuser.explain(2))
    assert "before: see" not in str(pyfuser.explain(flushes=0))


def test_explain_shows_spaces_that_differ() -> None:
    x, y = pk.View([100], pk.double), pk.View([100], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(100, add, x=x, value=1.0)
        pk.parallel_for(pk.RangePolicy(90, 99), add, x=y, value=1.0)
    (rejection,) = pyfuser.explain().rejections
    assert "they run over different ranges: [0, 100) and [90, 99)" in rejection.message


def test_calls_on_one_line_keep_the_workunit_s_names() -> None:
    u, v = pk.View([100], pk.double), pk.View([100], pk.double)
    with pyfuser.fusing():
        # fmt: off
        pk.parallel_for(100, add, x=u, value=1.0); pk.parallel_for(100, add, x=v, value=1.0)  # noqa: E702
        # fmt: on
        pk.parallel_for(100, add, x=u, value=2.0)
    (group,) = pyfuser.explain().groups
    assert group.removed_stores == {"x": 1}


@pytest.mark.parametrize("block", [pyfuser.fusing, pyfuser.unfused])
def test_a_block_that_a_line_drops_is_mentioned(block):
    with pytest.warns(WorkunitWarning, match="is a block, and this line enters none") as caught:
        if block is pyfuser.fusing:
            pyfuser.fusing()
        else:
            pyfuser.unfused()
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = block()
        del kept
        with block():
            pass


def test_a_function_that_launches_is_no_workunit():
    def simulate(v):
        pk.parallel_for(4, len, v=v)

    def with_teams(team, v):
        def inner(j):
            v[j] = 1.0

        pk.parallel_for(pk.TeamThreadRange(team, 4), inner)

    with pytest.warns(WorkunitWarning, match="'simulate' launches workunits") as caught:
        pyfuser.fuse(simulate)
    assert caught[0].lineno == simulate.__code__.co_firstlineno
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pyfuser.fuse(with_teams)
