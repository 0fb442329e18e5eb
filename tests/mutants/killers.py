"""Which tests kill the mutants of a law: remembered in killers.txt, and tried first.

The file saves time, no more: a law that is not in it, or whose tests have other names now, gets the
tests of the folders that mirror its own. `python -m tests.mutants --learn` writes it anew.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tests.mutants.generated import ROOT

FILE = Path(__file__).parent / "killers.txt"
#: Folders of tests for a folder of the product whose mirror is another one, or not enough.
MIRRORS = {
    "analysis": ("analysis/", "plan/", "soundness/"),
    "codegen": ("codegen/",),
    "engine": ("engine/", "gpu/"),
    "frontends": ("frontends/numpy/",),
    "ir": ("ir/", "plan/"),
    "nest": ("nest/", "codegen/"),
    "plan": ("plan/", "soundness/"),
    "runtime": (
        "test_following.py",
        "test_arbitration.py",
        "test_eager_integers.py",
        "test_rivals.py",
        "soundness/",
    ),
    "trace": ("trace/", "transform/", "soundness/"),
    "transform": ("transform/", "soundness/"),
}


def remembered() -> dict[str, list[str]]:
    """For each law the names of tests that kill its mutants."""
    found: dict[str, list[str]] = {}
    law = ""
    if FILE.exists():
        for line in FILE.read_text(encoding="utf-8").splitlines():
            if line.startswith("    "):
                found[law].append(line.strip())
            elif line:
                law = line
                found[law] = []
    return found


def remember(killers: Mapping[str, Sequence[str]]) -> None:
    """Write for each law the tests that kill its mutants."""
    lines = []
    for law in sorted(killers):
        lines += [law, *(f"    {test}" for test in killers[law])]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _folders(file: str) -> tuple[str, ...]:
    return MIRRORS.get(file.partition("/")[0], ())


def paths(laws: Collection[str], killers: Mapping[str, Sequence[str]], mirrors: bool) -> list[str]:
    """What pytest collects for mutants of some laws, below the root."""
    found = {test.partition("::")[0] for law in laws for test in killers.get(law, ())}
    if mirrors:
        found |= {folder for law in laws for folder in _folders(law)}
    folders = tuple(f for f in found if f.endswith("/"))
    chosen = [f for f in found if f in folders or not f.startswith(folders)]
    return sorted(path for f in chosen if (path := f"tests/{f}") and (ROOT / path).exists())


def mirror(file: str, tests: Sequence[str]) -> tuple[list[str], list[str]]:
    """Of the tests those of a file of the product: its own, by name, and others of its folders."""
    folders = _folders(file)
    stem = file.rpartition("/")[2].removesuffix(".py").strip("_")
    near = [t for t in tests if t.startswith(folders)]
    near.sort(key=lambda t: [t.startswith(f) for f in folders].index(True))
    return [t for t in near if stem in t], [t for t in near if stem not in t]
