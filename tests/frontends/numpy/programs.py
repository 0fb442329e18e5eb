"""Random NumPy programs, run by NumPy and by `pyfuser.numpy` side by side.

Every statement is made for NumPy's state and done to both; what it raises must be equal. States are
compared, bit for bit, at some statements and at the end: values, types, shapes, strides, flags,
which arrays share memory. Functions that may differ in the last places are compared at once, within
4 units, and then both sides go on with NumPy's values.
"""

from __future__ import annotations

import operator
import random
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import pyfuser.numpy as pnp
from pyfuser.frontends.numpy import selected
from pyfuser.frontends.numpy.operations import INEXACT
from pyfuser.frontends.numpy.spaces import SPACE
from pyfuser.runtime.session import TRACER
from pyfuser.trace import reason

DTYPES = ["f8", "f8", "f4", "i8", "i4", "i2", "i1", "u1", "u2", "u4", "u8", "?", "c16", "f2"]
SHAPES = [
    (6,),
    (1,),
    (4, 6),
    (4, 1),
    (2, 4, 6),
    (6, 4),
    (0, 6),
    (),
    (24,),
    (2, 2, 2, 3),
    (4, 20),
    (20,),
]
LARGE = [
    (70_000,), (1,), (70_000,), (280, 280), (280, 1), (280,), (1, 280), (30, 60, 40), (), (0, 280),
]  # fmt: skip
MOST_ELEMENTS = 2000
BINARY = [
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "maximum", "minimum",
    "left_shift", "right_shift", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_and",
    "logical_or", "logical_xor", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "power", "copysign", "hypot", "arctan2", "fmod",
]  # fmt: skip
UNARY = [
    "negative", "positive", "absolute", "sign", "square", "reciprocal", "invert", "logical_not",
    "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "floor", "ceil", "trunc", "fabs", "isnan",
    "isinf", "isfinite", "rint", "log1p", "expm1", "cbrt", "arctan", "conjugate",
]  # fmt: skip
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift, "<": operator.lt,
    "==": operator.eq, ">=": operator.ge,
}  # fmt: skip
IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv,
    "//=": operator.ifloordiv, "%=": operator.imod, "&=": operator.iand, "|=": operator.ior,
    "^=": operator.ixor, "<<=": operator.ilshift, ">>=": operator.irshift, "**=": operator.ipow,
}  # fmt: skip
FILLING = ("take", "dot", "einsum", "round", "fft", "nancumsum", "nansum", "nanmax", "percentile")
JOINING = ["hstack", "vstack", "column_stack", "append", "pad", "pad", "pad", "pad"]
WIDTHS: list[Any] = [1, 2, (1, 2), 3, 0, ((1, 0), (0, 2)), ((2,), (1,)), 7, (-1, 1)]
PADDING: list[dict[str, Any]] = [
    {}, {"constant_values": 3}, {"constant_values": -1.5}, {"constant_values": 300},
    *({"mode": mode} for mode in ("edge", "wrap", "reflect", "symmetric", "mean")),
    {"mode": "reflect", "reflect_type": "odd"},
]  # fmt: skip

FUNCTIONS = [
    "clip", "roll", "concatenate", "copy", "zeros_like", "cumsum", "sort", "diff", "stack",
    "ones_like", "tile", "abs", "repeat", "outer", "products",
    "neighbours",
]  # fmt: skip
REDUCTIONS = ["sum", "prod", "mean", "min", "max", "any", "all", "argmin", "argmax", "std", "var"]

WARNINGS = [False]
"""Whether warnings are compared, too: where NumPy's functions compute."""

EXACT = [False]
"""Whether all bits are NumPy's."""

DONE: Counter[str] = Counter()
"""Statements of each kind that were recorded."""


class Mismatch(AssertionError):
    """The two sides differ."""


class Both:
    """A value of each side."""

    __slots__ = ("numpys", "ours")

    def __init__(self, numpys: Any, ours: Any) -> None:
        self.numpys = numpys
        self.ours = ours


class Program:
    """One random program, done while it is made."""

    def __init__(self, seed: int, statements: int = 14) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.count = statements
        self.arrays: list[Both] = []
        self.exports: list[Both] = []
        self.masks: list[Both] = []
        self.chosen: list[tuple[Both, Both]] = []  # what masks selected, and which
        self.text: list[str] = []
        self.warned: Counter[str] = Counter()  # NumPy

    def run(self) -> None:
        with warnings.catch_warnings(record=True) as ours:
            warnings.simplefilter("always")
            try:
                for _ in range(self.random.randint(2, 4)):
                    self.create()
                for _ in range(self.count):
                    self.statement()
                self.compare()
                for both, _ in self.chosen:
                    self.compare_arrays(both, "what a mask selected")
                TRACER.flush(reason.SYNC)
                if WARNINGS[0]:
                    self.compare_warnings(Counter(str(warning.message) for warning in ours))
            except Mismatch as error:
                listing = "\n  ".join(self.text)
                raise Mismatch(f"seed {self.seed}: {error}\n  {listing}") from None
            finally:
                self.arrays.clear()
                self.exports.clear()
                self.masks.clear()
                self.chosen.clear()

    # ------------------------------------------------------------------- statements

    def statement(self) -> None:
        kinds: list[tuple[int, Callable[[], None]]] = [
            (2, self.create), (10, self.operator), (6, self.binary), (6, self.unary),
            (10, self.in_place), (8, self.view), (6, self.assign), (3, self.masked),
            (2, self.delete), (2, self.export), (2, self.change_export), (2, self.foreign),
            (2, self.read), (4, self.reduce), (3, self.where), (3, self.into), (1, self.compare),
            (4, self.function), (2, self.convert), (1, self.overlapping), (4, self.fancy),
            (3, self.at), (2, self.listed), (4, self.joined), (4, self.workunit),
            (3, self.reduce_rows), (3, self.reduce_short), (3, self.lookup), (2, self.tally),
            (2, self.filled),
            (5, self.selections),
        ]  # fmt: skip
        weights = [weight for weight, _ in kinds]
        (chosen,) = self.random.choices([kind for _, kind in kinds], weights)
        before = TRACER.recorded
        chosen()
        if TRACER.recorded > before:
            DONE[chosen.__name__] += 1

    def pick(self) -> Both:
        return self.random.choice(self.arrays)

    def operand(self) -> Both:
        """An array, or a number."""
        if self.random.random() < 0.65 and self.arrays:
            return self.pick()
        value = self.random.choice(
            [2, 3, 0, -1, 1, 7, 300, True, 0.5, 2.0, -1.5, float("nan"), float("inf"), -0.0, 1 + 2j,
             np.float32(0.1), np.int8(3), np.float64(2.5), np.uint64(5), np.int64(-4), 1e40, 1e39,
             np.uint8(3), np.int64(0), np.int32(-1), np.float32("nan"), -(2**60), 2**63,
             np.int64(7),
            np.array(2.5), np.array(-3)]
        )  # fmt: skip
        return Both(value, value)

    def create(self) -> None:
        shape = self.random.choice(SHAPES)
        dtype = np.dtype(self.random.choice(DTYPES))
        order = self.random.choice("CCCF")
        kind = self.random.choice(["values", "values", "values", "zeros", "ones", "full", "arange"])
        if kind == "values":
            values = np.array(self.values(shape, dtype), order=order)
            self.keep(
                f"array({shape}, {dtype}, {order})",
                lambda m: m.array(values, order=order),
            )
        elif kind == "arange":
            self.keep("arange", lambda m: m.arange(24, dtype="f8").reshape(4, 6))
        elif kind == "full":
            self.keep(f"full {shape} {dtype}", lambda m: m.full(shape, 3, dtype))
        else:
            self.keep(f"{kind} {shape} {dtype}", lambda m: getattr(m, kind)(shape, dtype))

    def values(self, shape: tuple[int, ...], dtype: Any) -> Any:
        with np.errstate(all="ignore"):
            return self.random_values(shape, dtype)

    def random_values(self, shape: tuple[int, ...], dtype: Any) -> Any:
        numbers = np.random.default_rng(self.random.randrange(1 << 30))
        if dtype.kind == "b":
            return numbers.random(shape) < 0.5
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            small = numbers.integers(0 if dtype.kind == "u" else -4, 9, shape)
            values = np.asarray(small).astype(dtype)
            if values.size and self.random.random() < 0.2:
                values.reshape(-1)[0] = self.random.choice([info.min, info.max])
            return values
        values = np.asarray(numbers.normal(size=shape) * 3).astype(dtype)
        if values.size and self.random.random() < 0.4:
            flat = values.reshape(-1)
            for special in (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e30):
                flat[self.random.randrange(flat.size)] = np.asarray(special).astype(dtype)
        return values

    def keep(
        self, text: str, function: Callable[..., Any], inexact: bool = False, *operands: Both
    ) -> None:
        """Do something on both sides, and keep the result if it is an array."""
        result = self.do(text, function, *operands)
        if result is None:
            return
        if inexact:
            self.compare_arrays(result, text, 0 if EXACT[0] else 4)
            if isinstance(result.numpys, np.ndarray):
                result.ours[...] = result.numpys
        elif not isinstance(result.numpys, np.ndarray):
            self.compare_arrays(result, text)
        if isinstance(result.numpys, np.ndarray):
            if type(result.ours) is not pnp.ndarray:
                raise Mismatch(f"{text} gives {type(result.ours)}")
            if result.numpys.size < MOST_ELEMENTS:
                self.arrays.append(result)
            if len(self.arrays) > 9:
                del self.arrays[self.random.randrange(len(self.arrays))]

    def do(self, text: str, function: Callable[..., Any], *operands: Both) -> Both | None:
        """`function(module, *values)` on both sides; what it raises must be equal."""
        self.text.append(text)
        failed: list[Any] = []
        results: list[Any] = []
        for module, values in (
            (np, [o.numpys for o in operands]), (pnp, [o.ours for o in operands])
        ):  # fmt: skip
            try:
                with warnings.catch_warnings(record=module is np) as warned:
                    try:
                        results.append(function(module, *values))
                    finally:
                        self.warned.update(str(warning.message) for warning in warned or ())
                failed.append(None)
            except Exception as error:
                results.append(None)
                failed.append(error)
        one, other = failed
        if type(one) is not type(other):
            raise Mismatch(f"{text}: NumPy raises {one!r}, we raise {other!r}") from other
        if one is not None:
            if str(one) != str(other) and "ufunc" not in str(one):
                raise Mismatch(f"{text}: NumPy says {one}, we say {other}")
            self.text[-1] += f"  # {type(one).__name__}"
            return None
        return Both(*results)

    def name(self, both: Both) -> str:
        for n, known in enumerate(self.arrays):
            if known is both:
                array = known.numpys
                return f"a{n}{array.dtype.str}{array.shape}"
        return repr(both.numpys)

    def operator(self) -> None:
        symbol = self.random.choice(list(OPERATORS))
        x, y = self.pick(), self.operand()
        if self.random.random() < 0.3:
            x, y = y, x
        function = OPERATORS[symbol]
        self.keep(f"{self.name(x)} {symbol} {self.name(y)}", lambda m, a, b: function(a, b),
                  False, x, y)  # fmt: skip

    def binary(self) -> None:
        name = self.random.choice(BINARY)
        x, y = self.pick(), self.operand()
        more: dict[str, Any] = {}
        if name == "copysign" and np.isnan(np.asarray(y.numpys)).any():
            return  # nobody says which sign a NaN has
        if self.random.random() < 0.1:
            more["dtype"] = self.random.choice(["f4", "f8", "i8"])
        text = f"{name}({self.name(x)}, {self.name(y)}, {more})"
        inexact = name in INEXACT
        self.keep(text, lambda m, a, b: getattr(m, name)(a, b, **more), inexact, x, y)

    def unary(self) -> None:
        name = self.random.choice(UNARY)
        x = self.pick()
        inexact = name in INEXACT or x.numpys.dtype.kind == "c"
        self.keep(f"{name}({self.name(x)})", lambda m, a: getattr(m, name)(a), inexact, x)

    def in_place(self) -> None:
        symbol = self.random.choice(list(IN_PLACE))
        y = Both(2, 2) if symbol == "**=" else self.operand()
        x = self.pick()
        function = IN_PLACE[symbol]

        def act(module: Any, a: Any, b: Any) -> Any:
            kept = a
            a = function(a, b)
            if a is not kept:
                raise AssertionError("not in place")

        self.do(f"{self.name(x)} {symbol} {self.name(y)}", act, x, y)

    def key(self, shape: tuple[int, ...]) -> Any:
        entries: list[Any] = []
        for extent in shape[: self.random.randint(0, len(shape))]:
            start = self.random.choice([None, 0, 1, -2, 2])
            stop = self.random.choice([None, None, -1, 3, 5])
            step = self.random.choice([None, None, 1, 2, -1])
            integer = self.random.randint(-extent - 1, extent) if extent else 0
            entries.append(
                self.random.choice([slice(start, stop, step), slice(start, stop, step), integer])
            )
        if self.random.random() < 0.15:
            entries.insert(self.random.randint(0, len(entries)), None)
        if self.random.random() < 0.15:
            entries.insert(self.random.randint(0, len(entries)), Ellipsis)
        return tuple(entries)

    def view(self) -> None:
        x = self.pick()
        shape = x.numpys.shape
        kind = self.random.choice(
            ["slice"] * 6 + ["T", "reshape", "swapaxes", "ravel", "expand_dims", "squeeze", "flip",
             "broadcast_to", "view", "diagonal", "real"]
        )  # fmt: skip
        if kind == "slice":
            key = self.key(shape)
            self.keep(f"{self.name(x)}[{key}]", lambda m, a: a[key], False, x)
        elif kind in ("T", "real"):
            self.keep(f"{self.name(x)}.{kind}", lambda m, a: getattr(a, kind), False, x)
        elif kind == "reshape":
            target = self.random.choice(
                [
                    (-1,),
                    (6, -1),
                    (4, 6),
                    (2, -1),
                    (24,),
                    (1, -1),
                    (-1, 1),
                    (2, -1, 2),
                    (-1, -1),
                    (0,),
                    (),
                ]
            )  # fmt: skip
            given = target if target and self.random.random() < 0.5 else (target,)
            self.keep(f"{self.name(x)}.reshape{given}", lambda m, a: a.reshape(*given), False, x)
        elif kind in ("ravel", "squeeze", "diagonal"):
            self.keep(f"{self.name(x)}.{kind}()", lambda m, a: getattr(a, kind)(), False, x)
        elif kind == "swapaxes":
            self.keep(f"swapaxes({self.name(x)})", lambda m, a: m.swapaxes(a, 0, 1), False, x)
        elif kind == "expand_dims":
            self.keep(f"expand_dims({self.name(x)})", lambda m, a: m.expand_dims(a, 0), False, x)
        elif kind == "flip":
            self.keep(f"flip({self.name(x)})", lambda m, a: m.flip(a), False, x)
        elif kind == "view":
            if x.numpys.dtype.kind in "fc":
                return  # nobody says which bits a NaN has
            other = self.random.choice(["u1", "u4", "i8", "f2"])
            self.keep(f"{self.name(x)}.view({other})", lambda m, a: a.view(other), False, x)
        else:
            self.keep(f"broadcast_to({self.name(x)})",
                      lambda m, a: m.broadcast_to(a, (2, *shape)), False, x)  # fmt: skip

    def assign(self) -> None:
        x, y = self.pick(), self.operand()
        key = self.key(x.numpys.shape) or Ellipsis
        if self.random.random() < 0.2:
            y = x

        def act(module: Any, a: Any, b: Any) -> None:
            a[key] = b

        self.do(f"{self.name(x)}[{key}] = {self.name(y)}", act, x, y)

    def masked(self) -> None:
        x, y = self.pick(), self.operand()
        level = self.random.choice([0, 0.5, 2])
        change = self.random.choice(["set", "add", "get", "computed"])

        def act(module: Any, a: Any, b: Any) -> Any:
            mask = a > level
            if change == "set":
                a[mask] = b
            elif change == "add":
                a[mask] += b
            elif change == "computed":
                a[mask] = a[mask] * 2
            else:
                return a[mask]
            return None

        text = f"{change} {self.name(x)}[> {level}] {self.name(y)}"
        if change == "get":
            self.keep(text, act, False, x, y)
        else:
            self.do(text, act, x, y)

    def selections(self) -> None:
        """Some statements on what one mask selects, which others come in between."""
        selected._ASKED.clear()
        x = self.pick()
        shape = x.numpys.shape
        fitting = [mask for mask in self.masks if mask.numpys.shape == shape[: mask.numpys.ndim]]
        if not fitting or self.random.random() < 0.3:
            level = self.random.choice([0, 0.5, 2])
            more = (0,) * self.random.choice([0, 0, 1, 2])
            made = self.do(
                f"mask {self.name(x)}[..., {more}] > {level}",
                lambda m, a: a[(..., *more)] > level,
                x,
            )
            if made is None or not isinstance(made.numpys, np.ndarray):
                return
            self.masks = [*self.masks[-2:], made]
            fitting = [made]
        mask = self.random.choice(fitting)
        for _ in range(self.random.randint(1, 5)):
            self.selection(x, mask)

    def selection(self, x: Both, mask: Both) -> None:
        kind = self.random.choice(
            ["select", "select", "compute", "compute", "in place", "store", "store", "mask", "keep"]
        )
        mine = [both for both, of in self.chosen if of is mask]
        known = mine if self.random.random() < 0.9 else [both for both, _ in self.chosen]
        other = (
            self.random.choice(known) if known and self.random.random() < 0.6 else self.operand()
        )
        more = self.random.choice([(), (), (), (0,), (-1,), (slice(None, -1),), (0, slice(1, 9))])
        if kind == "select":
            self.choose(
                f"{self.name(x)}[mask, {more}]",
                mask,
                lambda m, a, b: a[(b, *more) if more else b],
                x,
                mask,
            )
        elif kind == "mask":
            self.do("not mask", lambda m, a: m.logical_not(a, a), mask)
        elif not mine:
            return
        elif kind == "compute":
            symbol = self.random.choice(list(OPERATORS))
            function, one = OPERATORS[symbol], self.random.choice(mine)
            text = f"selected {symbol} {self.name(other)}"
            self.choose(text, mask, lambda m, a, b: function(a, b), one, other)
        elif kind == "in place":
            symbol = self.random.choice(["+=", "-=", "*="])
            change = IN_PLACE[symbol]
            self.do(
                f"selected {symbol} {self.name(other)}",
                lambda m, a, b: change(a, b) is a,
                self.random.choice(mine),
                other,
            )
        elif kind == "store":

            def act(module: Any, a: Any, b: Any, c: Any) -> None:
                a[(b, *more) if more else b] = c

            value = self.random.choice(mine) if self.random.random() < 0.8 else Both(2, 2)
            self.do(f"{self.name(x)}[mask, {more}] = selected", act, x, mask, value)
        else:
            self.keep("kept", lambda m, a: a, False, self.random.choice(mine))

    def choose(self, text: str, mask: Both, function: Any, *operands: Both) -> None:
        made = self.do(text, function, *operands)
        if made is not None and isinstance(made.numpys, np.ndarray):
            self.chosen = [*self.chosen[-5:], (made, mask)]

    def fancy(self) -> None:
        x = self.pick()
        index = self.random.choice([[0, 2, 1], [-1, 0, 0], [0, 9], [[0, 1], [1, 0]], [-9], [[]]])
        least = min(np.ravel(index), default=0)
        kind = self.random.choice(["i8", "i4", "u1"]) if least >= 0 else "i8"
        change = self.random.choice(["set", "get", "add"])

        def act(module: Any, a: Any) -> Any:
            if change == "get":
                return a[module.array(index, kind)]
            if change == "set":
                a[index] = 5
            else:
                a[module.array(index)] += 1
            return None

        if change == "get":
            self.keep(f"{self.name(x)}[{index}]", act, False, x)
        else:
            self.do(f"{change} {self.name(x)}[{index}]", act, x)

    def at(self) -> None:
        """A ufunc's `at`, by indices of each form."""
        x = self.pick()
        name = self.random.choice(["add", "subtract", "multiply", "maximum"])
        rows = self.random.choice([[0, 1, 1], [0], [-1, 0], [0, 9], [1, 1, 0, 0]])
        form = self.random.choice(["array", "list", "tuple", "slice", "lists", "number"])

        def act(module: Any, a: Any) -> None:
            index = module.array(rows)
            keys: dict[str, Any] = {
                "array": index, "list": [index, index], "tuple": (index, index),
                "slice": (slice(None), index), "lists": (index, rows), "number": (0, 0),
            }  # fmt: skip
            getattr(module, name).at(a, keys[form], 2)

        self.do(f"{name}.at({self.name(x)}, {form} of {rows})", act, x)

    def listed(self) -> None:
        """Arrays in a list, and results in a tuple."""
        x, y = self.pick(), self.operand()
        if self.random.random() < 0.5:
            self.keep(f"array([{self.name(x)}, {self.name(y)}])",
                      lambda m, a, b: m.array([a, b]), False, x, y)  # fmt: skip
        else:
            self.keep(f"gradient({self.name(x)})[-1]",
                      lambda m, a: m.gradient(a)[-1], False, x)  # fmt: skip

    def delete(self) -> None:
        if len(self.arrays) > 2:
            n = self.random.randrange(len(self.arrays))
            self.text.append(f"del a{n}")
            del self.arrays[n]

    def export(self) -> None:
        x = self.pick()
        how = self.random.choice(["asarray", "slice", "memoryview"])

        def act(module: Any, a: Any) -> Any:
            array = np.asarray(a)
            if how == "slice":
                return array[..., :2] if array.ndim else array
            return np.asarray(memoryview(array)) if how == "memoryview" and array.size else array

        found = self.do(f"export {self.name(x)} {how}", act, x)
        if found is not None:
            self.exports.append(found)
            if len(self.exports) > 2:
                del self.exports[0]

    def change_export(self) -> None:
        """Somebody else writes memory that was handed out, reads it, or lets go of it."""
        if not self.exports:
            return
        x = self.random.choice(self.exports)
        how = self.random.choice(["write", "drop", "read"])
        if how == "drop":
            self.text.append("drop an export")
            self.exports.remove(x)
        elif how == "write":

            def act(module: Any, a: Any) -> None:
                a[...] = 3

            self.do("an export changes", act, x)
        else:
            self.text.append("an export is read")
            self.compare_arrays(x, "an export")

    def foreign(self) -> None:
        """Somebody else's array, which the program wraps."""
        values = np.array(self.values(self.random.choice(SHAPES), np.dtype("f8")))
        pair = Both(values, values.copy())
        self.exports.append(pair)
        self.keep("asarray(foreign)", lambda m, a: m.asarray(a), False, pair)

    def read(self) -> None:
        x = self.pick()
        how = self.random.choice(["item", "tolist", "repr", "bool", "float", "iter", "len", "in"])

        def act(module: Any, a: Any) -> Any:
            if how == "item":
                return a.item(0)
            if how == "tolist" or (how == "iter" and len(a) > 1000):
                return repr(a[:3].tolist())
            if how == "repr":
                return repr(a)
            if how == "bool":
                return bool(a)
            if how == "float":
                return float(a)
            if how == "iter":
                return [repr(np.asarray(row)) for row in a]
            if how == "in":
                return 2 in a
            return len(a)

        found = self.do(f"{how} of {self.name(x)}", act, x)
        if found is not None and repr(found.numpys) != repr(found.ours):
            raise Mismatch(f"{how}: {found.numpys} and {found.ours}")

    def reduce(self) -> None:
        x = self.pick()
        name = self.random.choice(REDUCTIONS)
        axes = [None, None, 0, -1, 1, (0, 1), (1, 2), (-1, -2), (0, 2)]
        self.reduced(x, name, self.random.choice(axes), self.random.random() < 0.3)

    def reduce_rows(self) -> None:
        """Of rows of every length that has a loop of its own, which something was done to."""
        terms = self.random.choice([2, 7, 8, 9, 20, 127, 128, 129, 137, 200, 250, 300])
        shape = self.random.choice([(3, terms), (terms, 3), (2, 2, terms), (2, terms // 2, 2)])
        kind = np.dtype(self.random.choice(DTYPES))
        values = self.values(shape, kind)
        order = self.random.choice("CCCF")
        x = self.do(f"rows {shape} {kind} {order}", lambda m: m.array(values, order=order))
        assert x is not None
        if kind.kind == "f":
            x = self.do("* 2 + 1", lambda m, a: a * 2 + 1, x) or x
        axis = self.random.choice([-1, -1, 0, 1, (1, 2), (0, 1), None, None])
        self.reduced(x, self.random.choice(REDUCTIONS), axis, self.random.random() < 0.3)

    def reduce_short(self) -> None:
        """Of few elements each: blocks and windows of an array, and vectors of some elements."""
        count = self.random.choice([2, 3, 4, 7, 8])
        shape = self.random.choice([(600, count), (40, 20, count), (30, 2, 20, 2), (30, 20)])
        kind = np.dtype(self.random.choice(DTYPES))
        values = self.values(shape, kind)
        if kind.kind == "f" and self.random.random() < 0.3:
            values = np.copysign(kind.type(0), values)
        x = self.do(f"short rows {shape} {kind}", lambda m: m.array(values))
        if x is not None and kind.kind == "f" and self.random.random() < 0.7:
            x = self.do("* 2", lambda m, a: a * 2, x)
        if x is None:
            return
        how = self.random.choice(["plain", "plain", "window", "window", "T", "every other", "back"])
        window = (1,) * (len(shape) - 2) + self.random.choice([(2, 3), (3, 1), (1, 2)])

        def part(m: Any, a: Any) -> Any:
            if how == "window":
                return m.lib.stride_tricks.sliding_window_view(a, window)
            return {"plain": a, "T": a.T, "every other": a[1::2], "back": a[..., ::-1]}[how]

        y = self.do(f"{how} {window} of {self.name(x)}", part, x)
        if y is None:
            return
        rank = y.numpys.ndim
        axis = self.random.choice([-1, (-1,), (-2, -1), (0, -1), (1, 3), tuple(range(1, rank))])
        self.reduced(y, self.random.choice(REDUCTIONS), axis, self.random.random() < 0.3)

    def lookup(self) -> None:
        """A search for each element in a table, which is in order or not."""
        x = self.pick()
        kind = np.dtype(self.random.choice([*DTYPES[:-2], x.numpys.dtype]))
        values = self.values((self.random.randint(1, 7),), kind)
        if self.random.random() < 0.9:
            values = np.sort(values) if self.random.random() < 0.4 else np.unique(values)
        table = self.do(f"table {values!r}", lambda m: m.array(values))
        if table is None:
            return
        if self.random.random() < 0.3 and kind.kind == "f":
            table = self.do("* 2", lambda m, a: a * 2, table) or table
        how = self.random.choice(
            ["left", "right", "bins", "bins from the right", "interp", "interp"]
        )
        ends = self.random.choice([{}, {"left": -1.0}, {"left": 2, "right": float("nan")}])

        def look(m: Any, a: Any, t: Any) -> Any:
            if how == "interp":
                return m.interp(a, t, t * 3 + 1, **ends)
            if how.startswith("bins"):
                return m.digitize(a, t, how != "bins")
            return m.searchsorted(t, a, how) if len(ends) else t.searchsorted(a, how)

        self.keep(f"{how} {ends} of {self.name(x)}", look, False, x, table)
        if self.random.random() < 0.3:  # it has been looked at

            def change(m: Any, t: Any) -> None:
                t[...] = 1

            self.do("the table is another", change, table)

    def tally(self) -> None:
        """A histogram, of which counts, or sums of weights, and edges are kept."""
        x = self.pick()
        bins = self.random.choice([1, 2, 3, 10])
        ends = self.random.choice([None, None, (-2, 3), (0.25, 1.5), (1, 1)])
        more = {"density": True} if self.random.random() < 0.1 else {}
        y = self.random.choice([None, None, x, self.pick()])
        if self.random.random() < 0.3:
            y = self.do("weights", lambda m, a: a * 0.5 + 1, x)
        for which in (0, 1):

            def count(m: Any, a: Any, *weights: Any, which: int = which) -> Any:
                given = {"weights": weights[0]} if weights else {}
                return m.histogram(a, bins, ends, **more, **given)[which]

            arrays = (x,) if y is None else (x, y)
            self.keep(f"histogram {bins} {ends} of {self.name(x)}", count, False, *arrays)

    def reduced(self, x: Both, name: str, axis: Any, keepdims: bool) -> None:
        more: dict[str, Any] = {"keepdims": True} if keepdims else {}
        if name in ("var", "std") and self.random.random() < 0.3:
            more["ddof"] = 1
        text = f"{self.name(x)}.{name}({axis}, {more})"
        found = self.do(text, lambda m, a: getattr(a, name)(axis=axis, **more), x)
        if found is None:
            return
        in_order = EXACT[0] or not (axis is None or SPACE.device)
        if not in_order and name in SUMS and _rounds(x.numpys, name):
            self.compare_sums(found, x.numpys, text)
        elif SPACE.device and name in ("max", "min"):
            self.compare_arrays(self.do("+ 0", lambda m, a: a + 0, found) or found, text)
        else:
            self.compare_arrays(found, text)  # NumPy's order of additions

    def compare_sums(self, found: Both, terms: Any, text: str) -> None:
        """Sums of floats may be added up in another order."""
        one, other = np.asarray(found.numpys), np.asarray(found.ours)
        if type(found.numpys) is not type(found.ours) and type(found.ours) is not pnp.ndarray:
            raise Mismatch(f"{text}: {type(found.numpys)} and {type(found.ours)}")
        if one.dtype != other.dtype or one.shape != other.shape:
            raise Mismatch(f"{text}: {one!r} and {other!r}")
        with np.errstate(all="ignore"):
            finite = terms[np.isfinite(terms)]
            large = np.abs(finite.astype("c16" if terms.dtype.kind == "c" else "f8")).sum() + 1.0
            near = np.finfo(one.dtype).eps * 64.0 * large
            if "std" in text or "var" in text:
                near *= large
            wrong = ~((np.abs(one - other) <= near) | (one == other) | (one != one))
            if wrong.any() or not np.array_equal(one != one, other != other):
                raise Mismatch(f"{text}: NumPy has {one!r}, we have {other!r}")

    def where(self) -> None:
        x, y, z = self.pick(), self.operand(), self.operand()
        self.keep(f"where({self.name(x)} > 0, {self.name(y)}, {self.name(z)})",
                  lambda m, a, b, c: m.where(a > 0, b, c), False, x, y, z)  # fmt: skip

    def into(self) -> None:
        """A ufunc with `out=`, and perhaps `where=`."""
        name = self.random.choice(["add", "multiply", "subtract", "maximum", "less"])
        x, y, out = self.pick(), self.operand(), self.pick()
        masked = self.random.random() < 0.4 and name != "less"  # NumPy 2.4 crashes for less(u8, -1)
        casting = self.random.choice([None, None, "unsafe", "no"])
        placed = self.random.random() < 0.3

        def act(module: Any, a: Any, b: Any, c: Any) -> None:
            if placed:
                getattr(module, name)(a, b, c)
                return
            more: dict[str, Any] = {} if casting is None else {"casting": casting}
            if masked:
                more["where"] = c != 1
            getattr(module, name)(a, b, out=c, **more)

        text = f"{name}({self.name(x)}, {self.name(y)}, out={self.name(out)}, {casting} {masked})"
        self.do(text, act, x, y, out)

    def filled(self) -> None:
        """A function with an array for its result, which it may read, too."""
        x, name = self.pick(), self.random.choice(FILLING)
        placed = self.random.random() < 0.5
        if not x.numpys.ndim:
            return  # NumPy 2.4 crashes for nancumsum into a number

        def act(module: Any, a: Any) -> Any:
            function, out = getattr(module, name, None), a
            with np.errstate(all="ignore"):
                if name == "take":
                    order = list(range(len(a)))[::-1]
                    found = function(a, order, 0, a) if placed else function(a, order, 0, out=a)
                elif name == "dot":
                    found = function(a, a, a) if placed else function(a, a, out=a)
                elif name == "einsum":
                    found = function("ij,jk->ik", a, a, out=a)
                elif name == "round":
                    found = function(a, 1, a) if placed else function(a, 1, out=a)
                elif name == "fft":
                    found = module.fft.fft(a, out=a)
                elif name == "nancumsum":
                    found = function(a, 0, None, a) if placed else function(a, axis=0, out=a)
                else:
                    out = a[0]
                    more = (50, 0) if name == "percentile" else (0,)
                    found = function(a, *more, out=out)
            return found is out

        self.keep(f"{name} of {self.name(x)} into it, {placed}", act, False, x)

    def overlapping(self) -> None:
        x = self.pick()
        kind = self.random.choice(["shift", "back", "transpose", "flip", "row"])

        def act(module: Any, a: Any) -> None:
            if kind == "shift":
                a[1:] += a[:-1]
            elif kind == "back":
                a[:-1] = a[1:]
            elif kind == "transpose":
                a += a.T
            elif kind == "flip":
                a -= a[::-1]
            else:
                a *= a[0]

        self.do(f"overlapping {kind} of {self.name(x)}", act, x)

    def function(self) -> None:
        x = self.pick()
        name = self.random.choice(FUNCTIONS)
        y = self.pick() if self.random.random() < 0.3 else x
        reps = self.random.choice([2, (2,), (3, 1), (1, 2), 1])
        shift, axis = self.random.choice([1, -2, 5, 0]), self.random.choice([None, 0, 1, -1])
        bounds = self.random.choice(
            [(-1, 2), (0.5, 2.0), (-1.5, float("nan")), (float("nan"), 2), (np.float32(0.5), 3),
             (300, 400), (np.int8(-3), np.uint8(7)), (2, -1), (0, True), (1, None)]
        )  # fmt: skip
        clips = self.random.choice(["clip", "method"])
        named = {"axis": axis or 0} if self.random.random() < 0.5 else {}

        def act(module: Any, a: Any, b: Any) -> Any:
            if name == "clip":
                return module.clip(a, *bounds) if clips == "clip" else a.clip(*bounds)
            if name == "roll":
                return module.roll(a, shift, axis)
            if name == "diff":
                return module.diff(a, axis=-1 if axis is None else axis)
            if name in ("concatenate", "stack"):
                return getattr(module, name)(
                    (b, a, a[..., :1]) if axis == -1 else [a, b, a], **named
                )
            if name == "tile":
                return module.tile(a, reps)
            if name == "repeat":
                return module.repeat(a, 3, axis)
            if name == "outer":
                return module.add.outer(a[..., 0], b[..., -1])
            if name == "products":
                return module.outer(a, b)
            if name == "neighbours":
                left = module.roll(a, 1, axis)
                return module.where(left > module.roll(a, -2, axis), left, a)
            return getattr(module, name)(a)

        text = (
            f"{name}({self.name(x)}, {self.name(y)}, {shift}, {axis}, {bounds}, {clips}, {named})"
        )
        inexact = name == "cumsum" or (name == "abs" and x.numpys.dtype.kind == "c")
        self.keep(text, act, inexact, x, y)

    def joined(self) -> None:
        x = self.pick()
        y = self.pick() if self.random.random() < 0.3 else x
        name, axis = self.random.choice(JOINING), self.random.choice([None, 0, 1, -1])
        widths, mode = self.random.choice(WIDTHS), self.random.choice(PADDING)

        def act(module: Any, a: Any, b: Any) -> Any:
            if name == "append":
                return module.append(a, b, axis)
            if name == "pad":
                return module.pad(a, widths, **mode)
            return getattr(module, name)([a, b, a])

        text = f"{name}({self.name(x)}, {self.name(y)}, {axis}, {widths}, {mode})"
        self.keep(text, act, False, x, y)

    def convert(self) -> None:
        x = self.pick()
        kind = np.dtype(self.random.choice(DTYPES))
        order = self.random.choice(["K", "C", "F"])
        form = self.random.choice(["order", "dtype", "type", "name", "copy", "copied", "python"])
        if form in ("copy", "copied"):
            given = () if form == "copy" else (order,)
            self.keep(f"{self.name(x)}.copy{given}", lambda m, a: a.copy(*given), False, x)
            return
        python = self.random.choice([float, int, bool])
        dtype: Any = {"type": kind.type, "name": kind.name, "python": python}.get(form, kind)
        more = (order,) if form == "order" else ()
        self.keep(f"{self.name(x)}.astype({dtype}, {more})",
                  lambda m, a: a.astype(dtype, *more), False, x)  # fmt: skip

    def workunit(self) -> None:
        """A PyKokkos workunit on the array's memory."""
        from tests.frontends.numpy.workunits import double

        x = self.pick()
        array = x.numpys
        if array.dtype != np.float64 or array.ndim != 1 or not array.flags.writeable:
            return

        def act(module: Any, a: Any) -> None:
            if module is np:
                a *= 2.0
            else:
                double(a)

        self.do(f"workunit on {self.name(x)}", act, x)

    # ------------------------------------------------------------------- comparing

    def compare_warnings(self, ours: Counter[str]) -> None:
        """Recorded operations warn when they run, which all have now."""
        if ours != self.warned:
            more, less = ours - self.warned, self.warned - ours
            raise Mismatch(f"warnings: more {dict(more)}, less {dict(less)}")

    def compare(self) -> None:
        self.text.append("compare")
        arrays = list(self.arrays)
        self.random.shuffle(arrays)
        for both in arrays:
            self.compare_arrays(both, self.name(both))
        for both in self.exports:
            self.compare_arrays(both, "an export")
        if len(arrays) > 1:
            x, y = self.random.sample(arrays, 2)
            one = np.shares_memory(x.numpys, y.numpys)
            if one != pnp.shares_memory(x.ours, y.ours):
                raise Mismatch(f"{self.name(x)} and {self.name(y)} share memory: NumPy {one}")

    def compare_arrays(self, both: Both, text: str, ulps: int = 0) -> None:
        one, other = both.numpys, both.ours
        if not isinstance(one, np.ndarray):
            if type(one) is not type(other):
                raise Mismatch(f"{text}: {type(one)} and {type(other)}")
        else:
            for name in ("dtype", "shape", "ndim", "size"):
                if getattr(one, name) != getattr(other, name):
                    values = getattr(one, name), getattr(other, name)
                    raise Mismatch(f"{text}: {name} {values[0]} and {values[1]}")
            if one.size and _strides(one) != _strides(other):
                raise Mismatch(f"{text}: strides {one.strides} and {other.strides} {one.shape}")
            for flag in ("writeable", "c_contiguous", "f_contiguous"):
                if getattr(one.flags, flag) != getattr(other.flags, flag):
                    raise Mismatch(f"{text}: {flag} {getattr(one.flags, flag)}")
        found = np.asarray(other)
        if not _equal(np.asarray(one), found, ulps):
            raise Mismatch(f"{text}: NumPy has\n{one!r}\nwe have\n{found!r}")


SUMS = frozenset({"sum", "prod", "mean", "std", "var"})


def _rounds(terms: Any, name: str) -> bool:
    """Whether the order of additions decides the last bits of a sum."""
    if terms.dtype.kind in "fc":
        return True
    return name not in ("sum", "prod") and bool(np.any(np.abs(terms.astype(float)) >= 2.0**53))


def _equal(one: Any, other: Any, ulps: int) -> bool:
    if one.dtype.kind == "c":
        return _equal(one.real, other.real, ulps) and _equal(one.imag, other.imag, ulps)
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    nans = np.isnan(one)
    if not np.array_equal(nans, np.isnan(other)):
        return False
    one, other = one[~nans], other[~nans]
    if ulps and one.dtype.itemsize > 2:
        finite = np.isfinite(one)
        if not np.array_equal(one[~finite], other[~finite]):
            return False
        one, other = one[finite], other[finite]
        near = np.abs(one - other) <= ulps * np.spacing(np.maximum(np.abs(one), np.abs(other)))
        return bool(np.all(near))
    signs = np.array_equal(np.signbit(one), np.signbit(other))
    return bool(np.array_equal(one, other) and signs)


def _strides(array: Any) -> list[int]:
    """Of the axes along which there are several elements."""
    return [stride for extent, stride in zip(array.shape, array.strides, strict=True) if extent > 1]
