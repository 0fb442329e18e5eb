"""Every construct of Python's grammar, wherever it may stand, prints what it prints unfused."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pyfuser.run import rules
from tests.run import grammar
from tests.run.conftest import Runner, outcome

_DEPRECATED = {"Num", "Str", "Bytes", "NameConstant", "Ellipsis"}


def _constructs() -> set[str]:
    kinds = [*ast.stmt.__subclasses__(), *ast.expr.__subclasses__()]
    return {kind.__name__ for kind in kinds} - _DEPRECATED


def test_every_construct_has_a_rule() -> None:
    assert _constructs() <= rules.STATEMENTS.keys() | rules.EXPRESSIONS.keys()


def test_every_construct_is_tried() -> None:
    tried = grammar.CONSTRUCTS.keys() | grammar.ONLY_IN.keys()
    assert tried == rules.STATEMENTS.keys() | rules.EXPRESSIONS.keys()


def test_the_pieces_hold_what_they_are_named_for() -> None:
    for context in grammar.CONTEXTS:
        for name, piece in grammar.pieces(context):
            tree = ast.parse(grammar.placed(piece, context))
            assert name in {type(node).__name__ for node in ast.walk(tree)}


@pytest.mark.parametrize("context", grammar.CONTEXTS)
def test_constructs(context: str, run: Runner) -> None:
    different = []
    for name, piece in grammar.pieces(context):
        text = grammar.placed(piece, context)
        if outcome(run, text, True) != outcome(run, text, False):
            different.append(f"{name}:\n{piece}")
    assert not different, "\n".join(different)


def test_the_document_has_the_rules() -> None:
    document = Path(__file__).parents[2] / "docs" / "run.md"
    assert rules.table() in document.read_text(encoding="utf-8")
