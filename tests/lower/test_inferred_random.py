"""Random functions with names in any block: what is accepted has a value, that of Python."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pyfuser.ir.dtypes import DType
from pyfuser.ir.reference.interpret import interpret
from pyfuser.ir.verify import verify
from pyfuser.lower.lower import lower
from pyfuser.lower.types import ViewType
from pyfuser.support.errors import WorkunitError

SIZE = 8


class Maker:
    """Makes the lines of a function of `i` that stores into `v[i]`."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.loops = 0

    def block(self, depth: int, in_loop: bool) -> Iterator[str]:
        for _ in range(self.rng.randint(1, 4)):
            for line in self.statement(depth, in_loop):
                yield "    " + line

    def value(self) -> str:
        rng = self.rng
        return rng.choice((f"{rng.randint(0, 9)}.0", "v[i] + 1.0", f"{rng.choice('abc')} + 0.5"))

    def statement(self, depth: int, in_loop: bool) -> Iterator[str]:
        rng, kind = self.rng, self.rng.random()
        if kind < 0.4 or depth > 2:
            yield f"{rng.choice('abc')} = {self.value()}"
        elif kind < 0.55:
            yield f"v[i] = {self.value()}"
        elif kind < 0.6:
            yield f"{rng.choice('abc')} += 1.0"
        elif kind < 0.87:
            yield f"if i % {rng.randint(1, 3)} == {rng.randint(0, 1)}:"
            yield from self.block(depth + 1, in_loop)
            if rng.random() < 0.75:
                yield "else:"
                yield from self.block(depth + 1, in_loop)
        elif kind < 0.94:
            self.loops += 1
            yield f"for k{self.loops} in range({rng.choice(('i % 3', '2'))}):"
            yield from self.block(depth + 1, True)
        else:
            yield rng.choice(("continue", "break", "return") if in_loop else ("return",))


def function_of(seed: int) -> Callable[..., Any]:
    lines = ["def work(i, v):", *Maker(random.Random(seed)).block(0, False), "    v[i] += 1.0"]
    text, name = "\n".join(lines) + "\n", f"<inferred {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {"a": 77.0, "b": 78.0, "c": 79.0}  # meant where no value is given
    exec(compile(text, name, "exec"), space)
    function: Callable[..., Any] = space["work"]
    return function


def test_what_is_accepted_has_a_value_and_the_right_one() -> None:
    accepted = assigned_in_blocks = 0
    for seed in range(400):
        function = function_of(seed)
        try:
            workunit = lower(function, "for", 1, {"v": ViewType(DType.FLOAT64, 1)}).workunit
        except WorkunitError as error:
            assert "has no value" in str(error), f"seed {seed}: {error}"
            continue
        verify(workunit)
        wanted, found = np.arange(SIZE) / 2, np.arange(SIZE) / 2
        for i in range(SIZE):
            function(i, wanted)  # raises UnboundLocalError for a name without a value
        interpret(workunit, "for", (0,), (SIZE,), [found])
        assert (wanted == found).all(), f"seed {seed}"
        accepted += 1
        assigned_in_blocks += "(value=None" in repr(workunit) or "value=None)" in repr(workunit)
    assert accepted > 60 and assigned_in_blocks > 5
