"""What a process keeps is listed: tables in `support.caches`, all else in `runtime.session`."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pykokkos as pk

import pyfuser
from pyfuser.runtime import session
from pyfuser.runtime.session import SESSION
from pyfuser.support.caches import CACHES, CodeTable, Latest, Table
from pyfuser.support.counters import COUNTERS

PACKAGE = Path(__file__).parents[1] / "pyfuser"

#: Module-level objects that change and are no caches, by module: `runtime.session` names them.
STATE = {
    "ir.visit": {"_FIELDS", "_OPERANDS", "_BODIES", "_NESTED", "_SYM_FIELD"},
    "support.counters": {"COUNTERS"},
    "support.progress": {"_loggers"},
    "support.caches": {"CACHES"},
    "trace.pool": {"POOL", "SMALL"},
    "trace.images": {"USE", "_OWNERS"},
    "tuning.thresholds": {"NOW"},
    "lower.source": {"REWRITTEN"},
    "engine.launchable": {"team"},
    "engine.ahead": {"_BEGUN"},
    "engine.native": {"_FLIGHTS"},
    "engine.store.store": {"STORE"},
    "engine.gpu.device": {"DEVICES"},
    "runtime.session": {"SESSION"},
    "frontends.modes": {"SWITCHES", "_OWNED"},
    "frontends.embedded.careful": {"AT_ONCE"},
    "frontends.embedded.spaces": {"HOSTS", "_IN_USE"},
    "frontends.numpy.fallbacks": {"_COUNTS"},
    "frontends.numpy.floating": {"WARNER"},
    "frontends.numpy.memory": {"SELECTED"},
    "frontends.numpy.layout": {"ROWS"},
    "frontends.numpy.selected": {"_OPEN"},
    "frontends.numpy.spaces": {"SPACE"},
    "frontends.numpy.switches": {"LIMITS"},
    "frontends.numpy.wrap": {"KIND"},
    "frontends.upstream.failures": {"_NOT_THE_USERS", "_SAID", "PRINTED"},
    "frontends.upstream.lifetime": {"_ALIVE"},
    "frontends.upstream.views": {"QUIET"},
    "run.guards": {"SITES", "_OLD"},
    "run.watched": {"WATCHED"},
}
_MUTATING = {
    "add", "append", "clear", "discard", "extend", "insert", "move_to_end", "pop", "popitem",
    "remove", "setdefault", "update",
}  # fmt: skip
#: What is complete once its own module is imported.
COMPLETE = {"codegen.c.maths.scalar", "ir.arithmetic", "run.rules"}
_CONTAINERS = {"dict", "list", "set", "Counter", "OrderedDict", "WeakValueDictionary"}
_TABLES = {"Table", "Latest", "CodeTable"}

#: Classes whose instances do not change once they are made.
UNCHANGING = {"Token", "_Owner", "_Fresh"}


@pk.workunit
def scale(i, y, x):
    y[i] = 2.0 * x[i]


@pk.workunit
def total(i, acc, y):
    acc += y[i]


def program() -> float:
    x, y = np.arange(50.0), pk.View([50], pk.double)
    with pyfuser.fusing():
        pk.parallel_for(50, scale, y=y, x=x)
        return float(pk.parallel_reduce(50, total, y=y))


def test_a_cleared_session_knows_nothing_and_computes_the_same() -> None:
    pyfuser.sync()
    found = program()
    assert all(len(table) for table in (SESSION.programs, SESSION.kernels, SESSION.flushes))
    SESSION.clear()
    assert {kept.name for kept in CACHES if len(kept)} == set()
    plans, compilations = COUNTERS.plans, COUNTERS.compilations
    assert program() == found == 2450.0
    assert COUNTERS.plans == plans + 1 and COUNTERS.compilations == compilations
    program()
    assert COUNTERS.plans == plans + 1


def test_what_is_recorded_outlives_the_caches() -> None:
    x = np.zeros(5)
    with pyfuser.fusing():
        pk.parallel_for(5, scale, y=x, x=np.ones(5))
        SESSION.clear()
    assert (x == 2.0).all()


def test_a_table_keeps_the_latest() -> None:
    table: Table[int, str] = Table("of this test", 2)
    assert [table.keep(n, str(n)) for n in range(3)] == ["0", "1", "2"]
    assert list(table.items()) == [(1, "1"), (2, "2")]
    latest: Latest[int] = Latest("of this test", 2)
    assert [latest.keep(n) for n in range(3)] == [0, 1, 2] and latest == [1, 2]
    CACHES.remove(table)
    CACHES.remove(latest)


def test_what_is_known_of_code_goes_with_it() -> None:
    table: CodeTable[str] = CodeTable("of this test")
    scope: dict[str, Any] = {}
    exec("def gone(): pass", scope)
    code = scope.pop("gone").__code__
    table.keep(code, "known", key=1)
    assert table.of(code, 1) == "known" and table.of(code) is None
    del code
    assert not table
    CACHES.remove(table)


# --------------------------------------------------------------------------- the list


def modules() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
        yield name.removesuffix(".__init__"), ast.parse(file.read_text(encoding="utf-8"))


def assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Names that a module binds, with their values."""
    for stmt in tree.body:
        if isinstance(stmt, ast.Assign):
            yield from ((t.id, stmt.value) for t in stmt.targets if isinstance(t, ast.Name))
        elif isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name) and stmt.value:
            yield stmt.target.id, stmt.value


def called(value: ast.expr | None) -> str:
    """The class of what a value is an instance of, as far as it is written: `name[...](...)`."""
    if isinstance(value, (ast.Dict, ast.DictComp)):
        return "dict"
    if isinstance(value, (ast.List, ast.ListComp, ast.Set, ast.SetComp)):
        return "list"
    function = value.func if isinstance(value, ast.Call) else None
    while isinstance(function, ast.Subscript):
        function = function.value
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def plain_classes(trees: dict[str, ast.Module]) -> set[str]:
    """Classes of the package that are neither frozen nor tuples, enumerations or protocols."""
    found = set()
    for tree in trees.values():
        for cls in (node for node in tree.body if isinstance(node, ast.ClassDef)):
            bases = {base.id for base in cls.bases if isinstance(base, ast.Name)}
            frozen = any("frozen=True" in ast.unparse(made) for made in cls.decorator_list)
            if not frozen and not bases & {"NamedTuple", "Enum", "IntEnum", "Protocol"}:
                found.add(cls.name)
    return found


def changed(tree: ast.Module) -> set[str]:
    """Names whose object code stores into, or calls a method of that changes it."""
    found = set()
    for node in ast.walk(tree):
        holder = node if isinstance(node, (ast.Attribute, ast.Subscript)) else None
        stored = holder is not None and isinstance(holder.ctx, (ast.Store, ast.Del))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            holder, stored = node.func, node.func.attr in _MUTATING
        if stored and holder is not None and isinstance(holder.value, ast.Name):
            found.add(holder.value.id)
    return found


def imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Modules of the package and the names that are taken from them."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyfuser."):
            for alias in node.names:
                yield (node.module or "").removeprefix("pyfuser."), alias.name


def found_state(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """By module: containers that its code or an importer's changes, and instances of classes."""
    plain = plain_classes(trees) - _TABLES - UNCHANGING
    known = set()  # (module, name) of what is changed somewhere
    for module, tree in trees.items():
        names = changed(tree)
        known |= {(module, name) for name in names}
        known |= {(owner, name) for owner, name in imported(tree) if name in names}
    result: dict[str, set[str]] = {}
    for module, tree in trees.items():
        for name, value in assigned(tree):
            made = called(value)
            if made in plain or (made in _CONTAINERS and (module, name) in known):
                result.setdefault(module, set()).add(name)
    return result


def test_all_that_changes_is_listed() -> None:
    found = found_state(dict(modules()))
    assert {module: names for module, names in found.items() if module not in COMPLETE} == STATE
    for module in STATE.keys() - {"runtime.session"}:
        assert f"`{module}`" in (session.__doc__ or ""), module


def test_a_new_table_of_its_own_is_found() -> None:
    """The twin: of two dictionaries one is filled while the program runs."""
    trees = {"new": ast.parse("SEEN = {}\nNAMES = {}\ndef f(x):\n    SEEN[x] = NAMES[x]\n")}
    assert found_state(trees) == {"new": {"SEEN"}}
    trees = {"new": ast.parse("class Known:\n    def f(self): ...\nKNOWN = Known()\n")}
    assert found_state(trees) == {"new": {"KNOWN"}}


def test_functions_that_keep_results_are_in_the_list() -> None:
    text = "".join(
        f.read_text(encoding="utf-8") for f in PACKAGE.rglob("*.py") if f.stem != "caches"
    )
    assert not re.search(r"lru_cache|functools import .*\bcache\b|functools\.cache", text)


def test_the_docstring_has_every_table() -> None:
    rows = [row for row in (session.__doc__ or "").splitlines() if row.startswith("| `")]
    for name, tree in modules():
        for table, value in assigned(tree):
            if called(value) not in _TABLES:
                continue
            (row,) = [row for row in rows if f"`{name}`" in row and table in row]
            limit = getattr(importlib.import_module(f"pyfuser.{name}"), table).limit
            assert f"| {limit or '-'} |" in row, row
    for attribute, kept in vars(SESSION).items():
        if isinstance(kept, (Table, Latest)):
            (row,) = [row for row in rows if row.startswith(f"| `{attribute}` |")]
            assert f"| {kept.limit} |" in row


def test_what_is_used_stays() -> None:
    kept: Table[int, str] = Table("of a test", 2)
    try:
        kept.keep(1, "a")
        kept.keep(2, "b")
        assert kept.used(1) == "a" and kept.used(3) is None
        kept.keep(3, "c")
        assert list(kept) == [1, 3]
    finally:
        CACHES.remove(kept)
