"""Fixtures that tests of several folders share."""

from __future__ import annotations

import gc
import os
import sys
import tempfile

# Plans must not depend on the machine. Before pyfuser reads it, and for processes that tests start.
os.environ["PYFUSER_CALIBRATION"] = "0"
os.environ["PYFUSER_ARBITRATE"] = "0"

# Hundreds of tests start Python: with bytecode, as after an installation, each takes half the time.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    sys.pycache_prefix = f"{tempfile.gettempdir()}/pyfuser-bytecode-{os.getuid()}"
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    sys.dont_write_bytecode = False

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from pyfuser import pipeline
from pyfuser.engine import ahead
from pyfuser.engine.store.store import STORE
from pyfuser.ir.arithmetic import UndefinedBehaviour
from pyfuser.ir.reference.interpret import interpret
from pyfuser.ir.verify import IRError, verify
from pyfuser.plan.rewrites import recompute
from pyfuser.runtime.prepared import Workunits
from pyfuser.runtime.session import SESSION, TRACER
from pyfuser.support.caches import CACHES, Table
from pyfuser.trace.call import Call
from pyfuser.trace.future import Future
from pyfuser.trace.memory import Region
from pyfuser.trace.reason import SYNC
from pyfuser.trace.tracer import Tracer
from pyfuser.transform.fuse import Form, merged
from pyfuser.transform.kernel import Kernel

# What a program runs must not depend on how fast the machine compiles.
ahead.left_out = lambda name: True  # type: ignore[attr-defined]

# How long examples take to make is the machine's: a collection of garbage under a sanitizer, too.
settings.register_profile("pyfuser", suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pyfuser")


def _verified(each: pipeline.KernelPass, kernel: Kernel) -> Kernel:
    """What a pass makes of a kernel, verified, as it is where PYFUSER_DEBUG is set."""
    made = _applied(each, kernel)
    if made.workunit is not kernel.workunit:
        _verify(each.name, made)
    return made


def _verified_fusion(form: Form) -> Kernel:
    """The kernel that the passes begin with: of calls as they were lowered, or rewritten."""
    made = merged(form)
    _verify("fusion", made)
    return made


def _verify(name: str, kernel: Kernel) -> None:
    try:
        verify(kernel.workunit)
    except IRError as error:
        raise IRError(f"after {name}: {error}") from None


STORE.off = True  # a test that changes a pass must not leave its plans to others
_applied, pipeline._applied = pipeline._applied, _verified
pipeline.merged = _verified_fusion  # type: ignore[attr-defined]


class Interpreted:
    """An engine without compiler: the reference interpreter runs every call, in order, unfused.

    It counts what it ran: `ran` has the names of the workunits.
    """

    def __init__(self) -> None:
        self.ran: list[str] = []

    def run(self, call: Call) -> None:
        arguments = [
            a.array() if isinstance(a, Region) else a.result() if isinstance(a, Future) else a
            for a in call.arguments
        ]
        space = call.space
        try:
            values = interpret(call.workunit, call.pattern, space.begin, space.end, arguments)
        except UndefinedBehaviour as error:
            raise ZeroDivisionError(str(error)) from None
        if call.result is not None:
            call.result.set(values[0])
        self.ran.append(call.workunit.name)

    def flush(self, tracer: Tracer) -> None:
        for call in list(tracer.calls):
            try:
                self.run(call)
            except ZeroDivisionError as error:
                tracer.remove([call])
                tracer.give_up(error, call.position)
                raise
            tracer.remove([call])


@pytest.fixture
def idle_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels do nothing, and none is compiled: for tests of what is said before they run."""

    def forget() -> None:
        TRACER.flush(SYNC)
        for cache in CACHES:
            if isinstance(cache, Table | Workunits) and cache.name != "definitions by file":
                cache.clear()

    forget()
    nothing = 'extern "C" int pf_kernel() { return 0; }'
    monkeypatch.setattr("pyfuser.codegen.cpu.unit.emit", lambda _: nothing)
    yield
    forget()


@pytest.fixture(scope="module")
def quick_collections() -> Iterator[None]:
    """`gc.collect`, which takes 0.1 s late in a run, passes over what is there before a module."""
    gc.collect()  # what is garbage now would stay
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def nothing_recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls read what others store, for tests of what that forbids."""
    monkeypatch.setattr(recompute, "_may_gain", lambda *_: False)


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Interpreted]:
    """Runs calls by the reference interpreter, for tests of what is called when."""
    engine = Interpreted()
    TRACER.flush(SYNC)
    monkeypatch.setattr(SESSION, "run", engine.run)
    monkeypatch.setattr(TRACER, "flush_function", engine.flush)
    yield engine
    TRACER.flush(SYNC)


GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the expected files in tests/golden"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden("cpp/axpy.cpp", text)` compares a text with a file below tests/golden.

    With --update-golden it writes the file instead.
    """

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is missing: run pytest --update-golden and read the file"
        assert text == path.read_text(encoding="utf-8"), "if this is meant: pytest --update-golden"

    return compare
