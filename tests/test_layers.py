"""The architecture, held: folders import upwards only, in the order the data flows."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "pyfuser"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 450
MAX_CHAIN = 9  # of imports, from loops to their C++

# The order of the data's way: a folder (or a module at the top) imports itself and what is before.
ORDER = (
    "version",
    "support",
    "ir",
    "trace",
    "lower",
    "analysis",
    "tuning",
    "plan",
    "transform",
    "nest",
    "pipeline",
    "codegen",
    "engine",
    "checks",
    "runtime",
    "calibration",
    "frontends",
    "options",
    "report",
    "run",
    "numpy",
    "api",
    "compare",
    "cli",
    "__main__",
)
CALLS_THE_RUNTIME = {"calibration", "frontends", "report", "run", "api", "cli"}
# Errors name places in the user's source, and the type of a place is a part of the ir.
EXCEPTIONS = {("support", "pyfuser.ir.nodes")}


def layer(module: str) -> str:
    """The folder below pyfuser of a dotted name; the package itself is what `api` makes public."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "api"


def imports(tree: ast.AST, known: set[str]) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every module of pyfuser that is imported, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            parent = node.module or ""
            members = [f"{parent}.{alias.name}" for alias in node.names]
            names = [member if member in known else parent for member in members]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "pyfuser":
                yield node.lineno, name


def violations(file: Path, source: str, known: set[str]) -> list[str]:
    """What a module imports although it stands below it."""
    own = layer(dotted(file))
    if dotted(file) == "pyfuser":
        return []
    found = []
    for line, name in imports(ast.parse(source), known):
        target = layer(name)
        if (own, name) in EXCEPTIONS or not {own, target} <= set(ORDER):
            continue  # that a folder has no place is found by another test
        if ORDER.index(target) > ORDER.index(own):
            found.append(f"{file}:{line}: {own} imports {name}, which stands below it")
        if target == "runtime" and own not in CALLS_THE_RUNTIME | {"runtime"}:
            found.append(f"{file}:{line}: only {sorted(CALLS_THE_RUNTIME)} call the runtime")
    return found


def dotted(file: Path) -> str:
    name = ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
    return name.removesuffix(".__init__")


KNOWN = {dotted(file) for file in MODULES}


def test_imports_go_upwards() -> None:
    texts = {file: file.read_text(encoding="utf-8") for file in MODULES}
    assert [line for file in MODULES for line in violations(file, texts[file], KNOWN)] == []


def longest_chain(needs: Mapping[str, set[str]]) -> list[str]:
    """The longest way along imports that lead to no module twice."""
    known: dict[str, list[str]] = {}

    def below(name: str) -> list[str]:
        if name not in known:
            known[name] = [name, *max(map(below, needs[name]), key=len, default=())]
        return known[name]

    return max(map(below, needs), key=len)


def test_what_prints_loops_is_not_far_from_what_they_are() -> None:
    own = {name: file for file in MODULES if layer(name := dotted(file)) in ("nest", "codegen")}
    trees = {name: ast.parse(file.read_text(encoding="utf-8")) for name, file in own.items()}
    found = {name: {to for _, to in imports(tree, KNOWN)} for name, tree in trees.items()}
    needs = {name: (to & own.keys()) - {name} for name, to in found.items()}
    assert len(longest_chain(needs)) <= MAX_CHAIN, "\n".join(longest_chain(needs))
    assert longest_chain({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == ["a", "b", "c"]


def test_files_are_short() -> None:
    lines = {dotted(file): file.read_text(encoding="utf-8").count("\n") for file in MODULES}
    lines |= {file.name: file.read_text().count("\n") for file in PACKAGE.glob("hot/*.c")}
    assert {name: n for name, n in lines.items() if n > MAX_LINES} == {}, "split these"


def test_every_folder_has_a_place() -> None:
    found = {layer(name) for name in KNOWN}
    assert found <= set(ORDER), "give the new folder its place in ORDER and docs/architecture.md"


@pytest.mark.parametrize(
    ("module", "source", "refused"),
    [
        ("analysis/accesses.py", "from pyfuser.ir import nodes", False),
        ("analysis/accesses.py", "from pyfuser.plan import plan", True),
        ("ir/visit.py", "def late():\n    import pyfuser.trace.call", True),
        ("engine/native.py", "from pyfuser.runtime import flush", True),
        ("frontends/modes.py", "from pyfuser.runtime import flush", False),
        ("compare/measure.py", "from pyfuser.runtime.flush import flush", True),
        ("compare/measure.py", "import pyfuser", False),
        ("trace/call.py", "import pyfuser", True),
    ],
)
def test_the_rule_itself(module: str, source: str, refused: bool) -> None:
    assert bool(violations(PACKAGE / module, source, KNOWN)) is refused
