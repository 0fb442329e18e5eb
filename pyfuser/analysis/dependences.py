"""Dependences between the calls of a trace (contract; the implementation is being written)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pyfuser.ir.nodes import SourceLocation


class Kind(Enum):
    FLOW = "flow"  # write, then read
    ANTI = "anti"  # read, then write
    OUTPUT = "output"  # write, then write


@dataclass(frozen=True, slots=True)
class Dependence:
    """Two calls (positions in the trace) of which the second must not overtake the first.

    same_iteration: every pair of iterations that touch one cell is p = q, so a shared loop keeps
    the order. `first_view` / `second_view` are the user's argument names, with the locations of
    the accesses that conflict; `unknown` says that an access could not be analysed.
    """

    kind: Kind
    source: int
    sink: int
    same_iteration: bool
    first_view: str = ""
    second_view: str = ""
    first_location: SourceLocation | None = None
    second_location: SourceLocation | None = None
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class DependenceGraph:
    """All dependences of a trace, by (source, sink) with source < sink."""

    size: int
    dependences: tuple[Dependence, ...]
