"""The embedded PyKokkos has the names that PyKokkos has, and no others.

`pykokkos_names.txt` is `dir(pykokkos)` of PyKokkos (November 2025), without names in underscores.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

from pyfuser.frontends.embedded import pykokkos as pk
from pyfuser.support.errors import WorkunitWarning

THERE = set(Path(__file__).with_name("pykokkos_names.txt").read_text("utf-8").split())
HERE = {name for name in vars(pk) if not name.startswith("_")}

NOT_HERE = {
    # what its package imports for itself
    "Optional", "atexit", "add_enum_to_globals", "cleanup",
    # its translator and its bindings
    "Runtime", "bindings", "core", "interface_util", "runtime", "runtime_singleton",
    # modules that an import of the package binds; programs import what is in them from `pykokkos`,
    # or by the modules' own names, which `register` knows
    "accumulator", "atomic", "bin_sort", "data_types", "decorators", "execution_policy",
    "execution_space", "ext_module", "hierarchical", "layout", "lib",
    "mathematical_special_functions", "memory_space", "parallel_dispatch", "random", "timer",
    "views",
}  # fmt: skip
ONLY_HERE = {"from_numpy"}  # which PyKokkos has in its module `views` today


def test_every_name_is_there():
    assert THERE - HERE == NOT_HERE


def test_no_name_is_made_up():
    assert HERE - THERE == ONLY_HERE


@pytest.mark.parametrize("name", ["arange", "empty", "min", "maximum", "print", "parallel_sort"])
def test_what_does_not_exist_raises(name):
    assert name not in THERE
    with pytest.raises(AttributeError):
        getattr(pk, name)


def test_modules_of_the_package_have_their_functions():
    from pykokkos.interface.views import Subview, View, array, from_numpy

    assert (array, from_numpy, View, Subview) == (pk.array, pk.from_numpy, pk.View, pk.Subview)


@pytest.mark.parametrize(
    "name, advice",
    [
        ("max", "as in v.data.max()"),
        ("Max", "parallel_reduce adds up"),
        ("fuse", "write pyfuser.fuse"),
        ("arange", "use pk.array(np.arange(...))"),
    ],
)
def test_what_to_write_in_place_of_names_that_do_not_exist(name, advice):
    with pytest.raises(AttributeError, match=re.escape(advice)):
        getattr(pk, name)


def test_importing_everything_imports_nothing_aloud():
    assert pk.__all__ == ["__array_api_version__"]
    known = {}
    with pytest.warns(WorkunitWarning, match=r"`from pykokkos import \*` imports nothing"):
        exec("from pykokkos import *", known)
    assert "View" not in known and "__array_api_version__" in known
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec("from pykokkos import View; import pykokkos; pykokkos.__all__", {})
