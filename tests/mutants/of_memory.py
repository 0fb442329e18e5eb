"""Memory that loops ask for ahead: which arrays they walk along."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TEST = "codegen/test_ahead.py::test_what_is_asked_for"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "a loop asks for any number of arrays",
        "codegen/passes/prefetch.py",
        "if len(farthest) > MOST:",
        "if False:",
        _TEST,
    ),
    Mutant(
        "loops over short rows ask for memory",
        "codegen/cpu/prefetch.py",
        " or not spec.long_rows",
        "",
        _TEST,
    ),
    Mutant(
        "a loop asks along any stride",
        "codegen/passes/prefetch.py",
        "steps[unit] != 1 or ",
        "",
        _TEST,
    ),
    Mutant(
        "a loop asks for the first element it accesses",
        "codegen/passes/prefetch.py",
        " or _place(at) > _place(farthest[view])",
        "",
        _TEST,
    ),
    Mutant(
        "what is stored to is asked for as what is read",
        "codegen/passes/prefetch.py",
        "        if stores:\n            written.add(view)\n",
        "",
        _TEST,
    ),
    Mutant(
        "each line is asked for many times",
        "codegen/cpu/prefetch.py",
        "line += {max(LINE // size, 1)}",
        "line += 1",
        "codegen/test_ahead.py::test_lines_are_asked_for_once",
    ),
)
