"""The intermediate representation: frozen dataclasses, compared by structure.

Grammar::

    workunit  = Workunit(name, indices, params, accumulators, body, location, threads)
    param     = Param(sym, rank)                  rank 0: a scalar; else a view
    accum     = Accumulator(sym, last_pass, flat, along)
                                                  last_pass: a bool Sym for scans, else None
    stmt      = Declare(sym, value)               value None: uninitialised
              | DeclareArray(sym, values)         a small local array of constants length
              | Scratch(sym, shape)               memory of this iteration, zeroed
              | Assign(sym, value)
              | Store(view, indices, value)
              | Update(op, target, indices, value, atomic)
              | If(condition, then, orelse)
              | For(sym, start, stop, step, body, shared)
              | While(condition, body)
              | Break | Continue
              | Eval(expr)                        a call for its effect (printf, fence)
    expr      = Const(value, dtype) | Read(sym) | Load(view, indices) | Extent(view, axis)
              | Unary(op, operand) | Binary(op, left, right) | Compare(op, left, right)
              | Logical(op, left, right) | Call(name, args, dtype) | Cast(operand, dtype)
              | Select(condition, then, orelse)
              | AtomicFetch(op, view, indices, value, expected)

Rules that `verify` holds:

* Every expression has a `dtype`. The operands of a Binary or Compare have one common dtype:
  C++'s conversions are explicit Casts.
* There is no Return: lowering removes early returns by structure, so bodies can be put one after
  the other.
* An Update of an accumulator has `indices == ()`; `op` is one of UPDATE_OPS. An Update of a view
  with `atomic=False` is the read-modify-write `v[i] op= e` of one iteration.
* Index parameters are int32 Syms (int64 for spaces past 2**31); Load and Store indices are integer
  expressions. A For loops while `sym < stop` (`sym > stop` if `step` is a negative Const).
* Syms are unique: no two declarations share one, whatever their names.
* There are no teams: lowering makes a league's rank the index and loops of what is parallel in a
  team (see `lower.nested`). An Update of a local by "+" is a term of a sum whose order is free.
* The trips of a `shared` For are parallel in a team: no trip touches memory that another one
  writes, but by atomics, and none ends the loop. Locals around it may change in it, as in other
  loops. A pass that cannot keep that makes it a plain loop, which is always right.
"""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import TypeAlias

from pyfuser.ir.dtypes import DType
from pyfuser.support import places
from pyfuser.support.records import dataclass

ARITHMETIC_OPS = ("+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^")
COMPARE_OPS = ("==", "!=", "<", "<=", ">", ">=")
LOGICAL_OPS = ("&&", "||")
UNARY_OPS = ("+", "-", "!", "~")
UPDATE_OPS = (*ARITHMETIC_OPS, "min", "max", "exchange")


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A place in the user's program; lines and columns count from 1 and 0 as in `ast`."""

    file: str
    line: int
    column: int = 0
    function: str = ""

    def __str__(self) -> str:
        return f"{places.name(self.file)}:{self.line}"


@dataclass(frozen=True, slots=True)
class Sym:
    """A unique symbol: an index, parameter, accumulator or local."""

    name: str
    uid: int
    dtype: DType

    def __str__(self) -> str:
        return self.name


# --------------------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Const:
    value: bool | int | float | complex | str
    dtype: DType

    def __eq__(self, other: object) -> bool:
        # By type and text: 0.0 != -0.0, 1 != True, and NaN equals itself.
        return (
            type(other) is Const
            and self.dtype is other.dtype
            and repr(self.value) == repr(other.value)
        )

    def __hash__(self) -> int:
        return hash((repr(self.value), self.dtype))


@dataclass(frozen=True, slots=True)
class Read:
    sym: Sym

    @property
    def dtype(self) -> DType:
        return self.sym.dtype


@dataclass(frozen=True, slots=True)
class Load:
    """One element of a view or local array; `view.dtype` is the element's type."""

    view: Sym
    indices: tuple[Expr, ...]
    location: SourceLocation | None = field(default=None, compare=False)

    @property
    def dtype(self) -> DType:
        return self.view.dtype


@dataclass(frozen=True, slots=True)
class Extent:
    """`view.extent(axis)`: 64-bit unsigned upstream; a signed 64-bit integer here."""

    view: Sym
    axis: int

    @property
    def dtype(self) -> DType:
        return DType.INT64


@dataclass(frozen=True, slots=True)
class Unary:
    op: str
    operand: Expr
    dtype: DType


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic; both operands and the result have `dtype` (the count of a shift aside)."""

    op: str
    left: Expr
    right: Expr
    location: SourceLocation | None = field(default=None, compare=False)

    @property
    def dtype(self) -> DType:
        return self.left.dtype


@dataclass(frozen=True, slots=True)
class Compare:
    op: str
    left: Expr
    right: Expr

    @property
    def dtype(self) -> DType:
        return DType.BOOL


@dataclass(frozen=True, slots=True)
class Logical:
    """Short-circuit `&&` or `||` of two bools."""

    op: str
    left: Expr
    right: Expr

    @property
    def dtype(self) -> DType:
        return DType.BOOL


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a named function of the language: maths (see `ir.maths`) or `printf`."""

    name: str
    args: tuple[Expr, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Cast:
    """A C++ conversion. `explicit`: the source wrote it, e.g. `int(x)`."""

    operand: Expr
    dtype: DType
    explicit: bool = False


@dataclass(frozen=True, slots=True)
class Select:
    """`condition ? then : orelse`; only the chosen side is evaluated."""

    condition: Expr
    then: Expr
    orelse: Expr

    @property
    def dtype(self) -> DType:
        return self.then.dtype


@dataclass(frozen=True, slots=True)
class AtomicFetch:
    """An atomic whose old value is used; `expected` only for `compare_exchange`."""

    op: str
    view: Sym
    indices: tuple[Expr, ...]
    value: Expr
    expected: Expr | None = None
    location: SourceLocation | None = field(default=None, compare=False)

    @property
    def dtype(self) -> DType:
        return self.view.dtype


Expr: TypeAlias = (
    Const
    | Read
    | Load
    | Extent
    | Unary
    | Binary
    | Compare
    | Logical
    | Call
    | Cast
    | Select
    | AtomicFetch
)

# --------------------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class Declare:
    sym: Sym
    value: Expr | None


@dataclass(frozen=True, slots=True)
class DeclareArray:
    """`name: List[T] = [a, b, c]`; its elements are read by Load and written by Store."""

    sym: Sym
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Scratch:
    """A view of the iteration's own, row-major and zeroed each time; a negative extent is 0."""

    sym: Sym
    shape: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Assign:
    sym: Sym
    value: Expr


@dataclass(frozen=True, slots=True)
class Store:
    view: Sym
    indices: tuple[Expr, ...]
    value: Expr
    location: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Update:
    """`target[indices] op= value`; an accumulator is a target without indices."""

    op: str
    target: Sym
    indices: tuple[Expr, ...]
    value: Expr
    atomic: bool = False
    location: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class If:
    condition: Expr
    then: Body
    orelse: Body = ()


@dataclass(frozen=True, slots=True)
class For:
    """`shared`: the threads of a team may run its trips at once; every order is right."""

    sym: Sym
    start: Expr
    stop: Expr
    step: Expr
    body: Body
    shared: bool = False


@dataclass(frozen=True, slots=True)
class While:
    condition: Expr
    body: Body


@dataclass(frozen=True, slots=True)
class Break:
    pass


@dataclass(frozen=True, slots=True)
class Continue:
    pass


@dataclass(frozen=True, slots=True)
class Eval:
    expr: Expr


@dataclass(frozen=True, slots=True)
class Extra:
    """A statement that loop nests have and workunits have not: see `nest.nodes`.

    Some declare what they name, which is their `sym`.
    """


Stmt: TypeAlias = (
    Declare
    | DeclareArray
    | Scratch
    | Assign
    | Store
    | Update
    | If
    | For
    | While
    | Break
    | Continue
    | Eval
    | Extra
)
Body: TypeAlias = tuple[Stmt, ...]

# --------------------------------------------------------------------------- workunits


@dataclass(frozen=True, slots=True)
class Param:
    """A bound argument: a view of `rank` dimensions, or a scalar where `rank` is 0."""

    sym: Sym
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Accumulator:
    """A reduction's or scan's running sum; a scan also knows whether this is the last pass.

    flat: iterations over several axes are added up in the order and the parts of one axis. along:
    the axis along which neighbouring threads of a GPU add up, see `analysis.sums`.
    """

    sym: Sym
    last_pass: Sym | None = None
    flat: bool = False
    along: int | None = None


@dataclass(frozen=True)
class Workunit:
    """One kernel's code, without any data. Its hash is computed once.

    threads: of a block of a GPU for each iteration that is a team, if not as many as usual.
    """

    name: str
    indices: tuple[Sym, ...]
    params: tuple[Param, ...]
    body: Body
    accumulators: tuple[Accumulator, ...] = ()
    location: SourceLocation | None = field(default=None, compare=False)
    threads: int = 0

    @cached_property
    def _hash(self) -> int:
        return hash((self.indices, self.params, self.body, self.accumulators, self.threads))

    def __hash__(self) -> int:
        return self._hash
