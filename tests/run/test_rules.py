"""Every construct of Python's grammar, wherever it may stand, prints what it prints unfused."""

from __future__ import annotations

import ast
import re
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
    for name, piece in {each for context in grammar.CONTEXTS for each in grammar.pieces(context)}:
        tree = ast.parse(f"async def main():\n    {piece.replace(chr(10), chr(10) + '    ')}")
        assert name in {type(node).__name__ for node in ast.walk(tree)}


TOGETHER = 12  # pieces in one script, of which most is the same for all


def _different(run: Runner, context: str, pieces: list[tuple[str, str]]) -> list[str]:
    """The pieces that print something else when fused; together, or where one ends it in halves."""
    text = grammar.SETUP + "\n".join(
        re.sub(r"\b(main|inner|Main)\b", rf"\g<1>{n}", grammar.placed(piece, context))
        for n, (_, piece) in enumerate(pieces)
    )
    plain = outcome(run, text, False)
    whole = len(pieces) == 1 or not plain[1]
    if whole and outcome(run, text, True) == plain:
        return []
    if len(pieces) == 1:
        return ["{}:\n{}".format(*pieces[0])]
    half = len(pieces) // 2
    return [
        text for part in (pieces[:half], pieces[half:]) for text in _different(run, context, part)
    ]


@pytest.mark.parametrize("context", grammar.CONTEXTS)
def test_constructs(context: str, run: Runner) -> None:
    pieces = grammar.pieces(context)
    for first in range(0, len(pieces), TOGETHER):
        different = _different(run, context, pieces[first : first + TOGETHER])
        assert not different, "\n".join(different)


def test_the_document_has_the_rules() -> None:
    document = Path(__file__).parents[2] / "docs" / "run.md"
    assert rules.table() in document.read_text(encoding="utf-8")
