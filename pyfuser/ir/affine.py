"""Integer expressions as linear forms: a number times each term, and a constant.

    2 * (i + n) - j + 3   =   {i: 2, n: 2, j: -1} + 3

The law. Integers of n bits are a ring, so without conversions the form has the value of the
expression modulo 2**n, whatever overflows on the way. What is not linear, such as an element of a
view, a quotient or a conversion, is a term that is not taken apart. A pass that looks through
conversions has to know that they keep the value, or that it does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import Binary, Cast, Const, Expr, For, Read, Sym, Unary
from pyfuser.ir.visit import reads


class Linear(NamedTuple):
    """sum(coefficient * term) + constant; no coefficient is zero, and no term is linear itself."""

    terms: Mapping[Expr, int]
    constant: int

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """The sum `self + factor * other`."""
        terms = dict(self.terms)
        for term, count in other.terms.items():
            terms[term] = terms.get(term, 0) + factor * count
        terms = {term: count for term, count in terms.items() if count}
        return Linear(terms, self.constant + factor * other.constant)

    # law: not None
    def coefficient(self, sym: Sym) -> int | None:
        """By how much the value grows with a Sym; None if another term has it, too."""
        rest = (term for term in self.terms if term != Read(sym))
        return None if sym in reads(*rest) else self.terms.get(Read(sym), 0)


ZERO = Linear({}, 0)


# law: not None
def number(e: Expr) -> int | None:
    """The integer that an expression is, if it is a constant, perhaps converted."""
    match e:
        case Const(value=int(value)) if e.dtype.is_integer:
            return int(value)
        case Cast() if _is_whole(e):
            found, (low, high) = number(e.operand), e.dtype.range()
            return found if found is not None and low <= found <= high else None
    return None


# law: not None
def values_of(loop: For) -> range | None:
    """The values that a loop's variable takes, if its bounds are constants."""
    start, stop, step = number(loop.start), number(loop.stop), number(loop.step)
    return range(start, stop, step) if start is not None and stop is not None and step else None


# law
def linear(
    e: Expr,
    through: Callable[[Cast], bool] = lambda _: False,
    value: Callable[[Expr], int | None] = number,
) -> Linear:
    """The linear form of an integer expression.

    through: which conversions between integers it looks through. value: what an expression is, if
    that is known.
    """

    def form(e: Expr) -> Linear:
        known = value(e)
        if known is not None:
            return Linear({}, known)
        match e:
            case Cast() if _is_whole(e) and through(e):
                return form(e.operand)
            case Unary(op="-"):
                return ZERO.plus(form(e.operand), -1)
            case Binary(op="+" | "-"):
                return form(e.left).plus(form(e.right), 1 if e.op == "+" else -1)
            case Binary(op="*"):
                left, right = form(e.left), form(e.right)
                for one, other in ((left, right), (right, left)):
                    if not other.terms:
                        return ZERO.plus(one, other.constant)
        return Linear({e: 1}, 0)

    return form(e)


# law: True
def _is_whole(e: Cast) -> bool:
    """Whether a conversion keeps the values that fit: one to bool makes 1 of 2."""
    return e.operand.dtype.is_integer and e.dtype.is_integer and e.dtype is not DType.BOOL


def everywhere(_: Cast) -> bool:
    """Looks through all conversions, where a wrong answer costs time alone."""
    return True
