"""Early returns, removed by structure.

While a body is being lowered, RETURN marks a return. `without_returns` gives the same
computation without it, so that bodies can be put one after the other:

* what follows `if c: return` goes into the other branch: `if c: pass else: rest`;
* inside a loop a return sets a flag and leaves the loop; outer loops leave where the flag is set,
  and what follows the outermost loop is guarded by `not flag`;
* where a branch may return but need not, what follows is guarded by the flag too.
"""

from __future__ import annotations

from pyfuser.ir.canonical import fresh
from pyfuser.ir.dtypes import DType
from pyfuser.ir.nodes import (
    Assign,
    Body,
    Break,
    Call,
    Const,
    Continue,
    Declare,
    Eval,
    For,
    If,
    Read,
    Stmt,
    Unary,
    While,
)
from pyfuser.ir.visit import breaks_loop, statements

RETURN = Eval(Call("return", (), DType.BOOL))

_TRUE = Const(True, DType.BOOL)
_FALSE = Const(False, DType.BOOL)


def without_returns(body: Body) -> Body:
    """The body without RETURN marks."""
    if not _may_return(*body):
        return body
    remover = _Remover()
    result = remover.straight(body)
    return (Declare(remover.flag, _FALSE), *result) if remover.flag_used else result


def _may_return(*body: Stmt) -> bool:
    return any(stmt is RETURN for stmt in statements(body))


def ends_with_return(body: Body) -> bool:
    """Whether each way through a body ends with a return, or goes round a loop for ever."""
    return any(
        stmt is RETURN
        or (isinstance(stmt, If) and ends_with_return(stmt.then) and ends_with_return(stmt.orelse))
        or (
            isinstance(stmt, While)
            and stmt.condition == _TRUE
            and not any(map(breaks_loop, stmt.body))
        )
        for stmt in body
    )


class _Remover:
    def __init__(self) -> None:
        self.flag = fresh("returned", DType.BOOL)
        self.flag_used = False

    def straight(self, body: Body, guarded: bool = False) -> Body:
        """A body outside loops; `guarded`: code after it runs unless the flag is set."""
        result: list[Stmt] = []
        for place, stmt in enumerate(body):
            rest = body[place + 1 :]
            if stmt is RETURN:
                if guarded:
                    result.append(self._set_flag())
                break
            if not _may_return(stmt):
                result.append(stmt)
            elif isinstance(stmt, If):
                result.extend(self._branch(stmt, rest, guarded))
                break
            else:
                result.append(self._loop(stmt))
                if rest:
                    result.append(If(self._not_returned(), self.straight(rest, guarded)))
                break
        return tuple(result)

    def _branch(self, stmt: If, rest: Body, guarded: bool) -> Body:
        if ends_with_return(stmt.then) or not rest:
            then = self.straight(stmt.then, guarded)
            return (If(stmt.condition, then, self.straight(stmt.orelse + rest, guarded)),)
        if ends_with_return(stmt.orelse):
            orelse = self.straight(stmt.orelse, guarded)
            return (If(stmt.condition, self.straight(stmt.then + rest, guarded), orelse),)
        branch = If(
            stmt.condition, self.straight(stmt.then, True), self.straight(stmt.orelse, True)
        )
        return (branch, If(self._not_returned(), self.straight(rest, guarded)))

    def _loop(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, For):
            return For(stmt.sym, stmt.start, stmt.stop, stmt.step, self._inside(stmt.body))
        assert isinstance(stmt, While)
        return While(stmt.condition, self._inside(stmt.body))

    def _inside(self, body: Body) -> Body:
        """A body inside a loop: a return becomes a break."""
        result: list[Stmt] = []
        for stmt in body:
            if stmt is RETURN:
                result += (self._set_flag(), Break())
                break
            if not _may_return(stmt):
                result.append(stmt)
            elif isinstance(stmt, If):
                then, orelse = self._inside(stmt.then), self._inside(stmt.orelse)
                result.append(If(stmt.condition, then, orelse))
            else:
                result.append(self._loop(stmt))
                result.append(If(Read(self.flag), (Break(),)))
            if isinstance(stmt, (Break, Continue)):
                break
        return tuple(result)

    def _set_flag(self) -> Stmt:
        self.flag_used = True
        return Assign(self.flag, _TRUE)

    def _not_returned(self) -> Unary:
        return Unary("!", Read(self.flag), DType.BOOL)
