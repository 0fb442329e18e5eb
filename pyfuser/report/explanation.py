"""The report as people meet it: as text, and in a notebook as HTML."""

from __future__ import annotations

from pyfuser.report import data, page, text
from pyfuser.report.model import Report
from pyfuser.support.records import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Report):
    """A Report whose `str` and `repr` are its text; a notebook shows HTML."""

    def __str__(self) -> str:
        return text.of(self, text.width())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return page.fragment(self)

    def tree(self) -> data.Tree:
        """The report as JSON has it; docs/explain.md has the keys."""
        return data.tree(self)

    def html(self) -> str:
        """The report as a page of its own."""
        return page.page(self)
