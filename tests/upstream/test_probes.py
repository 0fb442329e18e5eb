"""Whether the hooks fit is found out by trying; no PyKokkos needs to be installed for this."""

from __future__ import annotations

import atexit
import importlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from pyfuser.frontends.upstream.functions import redirect
from pyfuser.frontends.upstream.probes import PROBES, refusal
from tests.upstream import installed
from tests.upstream.stand_in import install, run

PROGRAM = """
import pyfuser
import pykokkos as pk

@pk.workunit
def grow(i, x):
    x[i] += 1

x = pk.View([4])
with pyfuser.fusing():
    for _ in range(3):
        pk.parallel_for(4, grow, x=x)
print([int(v) for v in x], pyfuser.stats().recorded)
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    return install(tmp_path / "site")


def test_what_behaves_like_pykokkos_is_hooked(stand_in: Path) -> None:
    """It has none of the files of any revision of PyKokkos."""
    done = run(stand_in, PROGRAM)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[3, 3, 3, 3] 3\nKokkos ends\n"


LEFT_TO_IT = """
import pyfuser
import pykokkos as pk

@pk.workunit
def plain(i, x):
    x[i] += 1

@pk.workunit(x="where it lies")
def known(i, x):
    x[i] += 1

@pk.workunit(reducer="Max")
def named(i, x):
    x[i] += 1

@pk.workunit(x="where it lies", **{"scratch": []})
def hidden(i, x):
    x[i] += 1

x = pk.View([4])
recorded = []
for call in (
    (4, plain), (4, known), (4, plain, 0), (4, plain, 0.0), (4, named), (4, hidden), (4, plain, 2.5)
):
    before = pyfuser.stats().recorded
    with pyfuser.fusing():
        pk.parallel_for(*call, x=x)
    recorded.append(pyfuser.stats().recorded - before)
print(recorded, [int(v) for v in x])
del x
"""


def test_options_and_initial_values_that_it_may_know_are_left_to_it(stand_in: Path) -> None:
    """An initial value of 0 is none, and options for a parameter say where a View lies."""
    done = run(stand_in, LEFT_TO_IT)
    assert done.stdout == "[1, 1, 1, 1, 0, 0, 0] [7, 7, 7, 7]\nKokkos ends\n", done.stderr


#: By the probe that sees it: what another PyKokkos might do, as a change of the stand-in.
_ARRAY = "self.data = np.asarray(self.array)\n\n    def"
_AS_VIEW = "return View(array.shape, array.dtype, array)"
DIFFERENT = {
    "the functions that are hooked": (
        ("def flush():\n    pass", "flush = print"),
        ("def fence():\n    pass", "fence = (lambda done: lambda: done)(None)"),
        ("def fence():\n    pass", ""),
        ("def execute(space, workload):", "@staticmethod\ndef execute(space, workload):"),
        ("def parallel_scan(*args, **kwargs):", "def parallel_scan(policy, *args, **kwargs):"),
    ),
    "the runtime": (
        ("fusion_strategy = None", "fusion_strategy = 'naive'"),
        ("self, name, policy, workunit, operation,", "self, name, policy, operation, workunit,"),
        (
            "runtime_singleton = types.",
            "runtime_singleton = types.SimpleNamespace(other=1) or types.",
        ),
    ),
    "policies and execution spaces": (
        ("self.begin, self.end = args[-2:]", "self.start, self.end = args[-2:]"),
        ("self.begin, self.end = space, begin, end", "self.end, self.begin = space, begin, end"),
        ("ExecutionSpace.OpenMP, *args[-2:]", "'OpenMP', *args[-2:]"),
        ("= ExecutionSpace.OpenMP, *args[-2:]", "= ExecutionSpace.OpenMP, 1, 1"),
        ('"OpenMP Serial Debug Default"', '"OpenMP Parallel Debug Default"'),
    ),
    "the classes of Views": (
        ("    data: np.ndarray\n", "    xp_array = property(lambda self: self.data)\n"),
        ("    data: np.ndarray\n", "    def __getattr__(self, name): raise AttributeError(name)\n"),
        ("    def fill(self, value):", "    def fill(this, value):\n        self = this"),
        ("def __init__(self, parent_view, data_slice):", "def __init__(self, parent, *slices):"),
        ("class Subview(ViewType):", "class Subview:"),
    ),
    "the memory of a View": (
        (_ARRAY, _ARRAY.replace("np.asarray(self.array)", "self.array")),
        (_ARRAY, "self.host = " + _ARRAY),
        ("bytearray(math.prod(shape) * ", "bytearray(b'1' * math.prod(shape) * "),
        ("return self.data[key] if", "return self.data[key:][:1] if"),
        ("        self.data[part] = before[part]\n", ""),
        ("Trait.TraitDefault if array", "Trait.Unmanaged if array"),
    ),
    "the memory of a Subview": (
        ("else Subview(self, key)", "else self.data[key]"),
        ("= parent_view.data[data_slice]", "= parent_view.data[data_slice].copy()"),
        ("= parent_view.data[data_slice]", "= self.window = parent_view.data[data_slice]"),
    ),
    "arrays as arguments": (
        (_AS_VIEW, _AS_VIEW[:-1] + ".copy())"),
        (_AS_VIEW, "return array"),
        ("= self.xp_array = array", "= self.xp_array = self.np_array = array"),
    ),
}
CHANGES = [(name, change) for name, changes in DIFFERENT.items() for change in changes]


@contextmanager
def imported(package: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The package, imported as pykokkos and without its end, beside the one that is there."""
    with monkeypatch.context() as patch:
        for name in list(sys.modules):
            if name.split(".")[0] == "pykokkos":
                patch.delitem(sys.modules, name)
        patch.syspath_prepend(package.parent)
        patch.setattr(
            sys, "meta_path", [f for f in sys.meta_path if "pyfuser" not in repr(type(f))]
        )
        module = importlib.import_module("pykokkos")
        atexit.unregister(module.finalize)
        yield module
        for name in list(sys.modules):
            if name.split(".")[0] == "pykokkos":
                del sys.modules[name]


@pytest.mark.parametrize(("probe", "change"), CHANGES)
def test_each_difference_is_found_by_its_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, probe: str, change: tuple[str, str]
) -> None:
    with imported(install(tmp_path / "site", change), monkeypatch) as module:
        why = refusal(module)
    assert why is not None
    assert f"the probe of {probe} found that " in why


def test_what_it_has_given_up_is_not_missed(tmp_path: Path) -> None:
    """Workloads, and methods that only make new memory."""
    changes = (
        ("def execute(space, workload):\n    pass", ""),
        ("def flush():\n    pass", ""),
        ("def classtype(func):\n    return func", ""),
        ("    def resize(self, dimension, size):", "    def reshape(self, dimension, size):"),
        ("    def set_precision(self, dtype):", "    def reinterpret(self, dtype):"),
    )
    script = PROGRAM + "x.reshape(0, 5)\npk.parallel_for(5, grow, x=x)\nprint(int(x[3]), int(x[4]))"
    done = run(install(tmp_path / "site", *changes), script)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[3, 3, 3, 3] 3\n4 1\nKokkos ends\n"


def test_every_probe_has_its_differences() -> None:
    assert list(DIFFERENT) == list(PROBES)


def test_the_stand_in_is_not_refused(stand_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with imported(stand_in, monkeypatch) as module:
        assert refusal(module) is None
        monkeypatch.setenv("PK_FUSION", "naive")
        assert "PyKokkos fuses by itself" in (refusal(module) or "")


@pytest.mark.parametrize("order", ["pyfuser, pykokkos", "pykokkos, pyfuser"])
def test_what_does_not_fit_is_left_alone(tmp_path: Path, order: str) -> None:
    package = install(tmp_path / "site", ("fusion_strategy = None", "fusion_strategy = 'naive'"))
    program = PROGRAM.replace(
        "import pyfuser\nimport pykokkos as pk", f"import {order}; pk = pykokkos"
    )
    done = run(package, program + "del x")
    assert (done.returncode, done.stdout) == (0, "[3, 3, 3, 3] 0\nKokkos ends\n"), done.stderr
    assert done.stderr.startswith(
        f"{tmp_path / 'program.py'}:2: PyFuserWarning: pyfuser does not fit "
    )
    assert len(done.stderr.splitlines()) == 2  # the other is the program's line
    assert (
        f"pyfuser does not fit the PyKokkos in {package}: the probe of the runtime" in done.stderr
    )
    assert "PYFUSER_FRONTEND=embedded" in done.stderr


def test_nothing_is_imported_and_nothing_said_before_the_program_does(stand_in: Path) -> None:
    done = run(stand_in, "import sys, pyfuser\nprint('pykokkos' in sys.modules)")
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_the_embedded_one_can_be_asked_for(stand_in: Path) -> None:
    script = "import pyfuser, pykokkos\nprint(pykokkos.View([2])[0])"
    done = run(stand_in, script, PYFUSER_FRONTEND="embedded")
    assert (done.stdout, done.stderr) == ("0.0\n", "")


def test_the_engine_needs_an_installed_one(stand_in: Path) -> None:
    settings = {"PYFUSER_FRONTEND": "embedded", "PYFUSER_ENGINE": "pykokkos"}
    done = run(stand_in, "import pyfuser", **settings)
    assert done.returncode == 1
    assert "PYFUSER_ENGINE=pykokkos needs an installed PyKokkos" in done.stderr


def test_bits_are_not_compared_with_another_compiler(stand_in: Path) -> None:
    done = run(stand_in, "import pyfuser", PYFUSER_ENGINE="pykokkos", PYFUSER_VERIFY="1")
    assert done.returncode == 1
    assert "PYFUSER_VERIFY=1 compares bits" in done.stderr


def test_a_function_that_was_bound_before_is_redirected() -> None:
    namespace: dict[str, object] = {}
    exec("def greet(name='you', *, loud=False):\n    return name, loud\n", namespace)
    greet = bound_before = namespace["greet"]
    seen = []

    def make(original):  # type: ignore[no-untyped-def]
        def call(*args, **kwargs):  # type: ignore[no-untyped-def]
            seen.append(args)
            return original(*args, **kwargs)

        return call

    redirect(greet, make)  # type: ignore[arg-type]
    redirect(greet, make)  # type: ignore[arg-type]
    assert bound_before() == ("you", False)  # type: ignore[operator]
    assert bound_before("me", loud=True) == ("me", True)  # type: ignore[operator]
    assert seen == [(), ("me",)]


@pytest.mark.pykokkos
def test_the_installed_one_fits() -> None:
    script = "import pyfuser, pykokkos, sys; print(len(sys.argv))"
    done = subprocess.run(
        [installed.require(), "-W", "error", "-c", script],
        env=installed.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


@pytest.mark.parametrize("first", ["pyfuser, pykokkos as pk", "pykokkos as pk, pyfuser"])
def test_a_folder_that_gives_way_to_any_pykokkos(tmp_path: Path, first: str) -> None:
    """As `kernels/pykokkos` does, which has a place that `register` knows."""
    shim = Path(__file__).parents[2] / "kernels" / "pykokkos" / "__init__.py"
    package = tmp_path / "site" / "pykokkos"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(shim.read_text("utf-8"))
    done = run(package, f"import {first}\nprint(pk.View([2])[0])")
    assert (done.stdout, done.stderr) == ("0.0\n", "")
