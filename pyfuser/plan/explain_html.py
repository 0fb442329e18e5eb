"""What a notebook shows of a report: the text of `explain`, folded, with the sources at hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def page(parts: Iterable[str]) -> str:
    """The whole, of parts made by the functions below."""
    return f'<div class="pyfuser">{"".join(parts)}</div>'


def line(text: str) -> str:
    """A line that stands alone."""
    return f"<p>{escape(text)}</p>"


def kernel(title: str, facts: Sequence[str], sources: Sequence[str]) -> str:
    """A kernel: its title, what is told of it, and the source of each of its loops."""
    # A fact may stand below the one before it, by its indentation.
    told = "".join(
        f'<div style="margin-left: {_indentation(fact):.1f}em">{escape(fact.strip())}</div>'
        for fact in facts
    )
    text = escape("\n\n".join(source.rstrip() for source in sources))
    shown = f"<details><summary>source</summary><pre>{text}</pre></details>"
    return f"<details open><summary>{escape(title)}</summary>{told}{shown}</details>"


def listing(title: str, items: Iterable[str]) -> str:
    """A title and what belongs to it."""
    shown = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f"<p>{escape(title)}</p><ul>{shown}</ul>"


def _indentation(text: str) -> float:
    """In widths of an m, of which three columns of text are about one."""
    return 1.5 + (len(text) - len(text.lstrip())) / 3
