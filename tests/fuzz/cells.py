"""Which memory cells the iterations of one workunit touch: keeps most racy programs from arising.

Races are found for certain by running (see `harness.run_unfused`); this is cheaper by far.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

ANY = -1  # in place of an iteration: more than one, or nobody knows which

Touches = list[tuple[int, int]]  # iteration, cell


@lru_cache(maxsize=1024)
def _element(index: str) -> Callable[..., int]:
    """`[i + 1, j]` as a function of the nested list that is indexed, i and j."""
    text = index.replace(", ", "][")
    function: Callable[..., int] = eval(f"lambda v, i, j: v{text}")
    return function


def view_cells(text: str, name: str, shape: tuple[int, ...]) -> Any:
    """The cells of a part of a base, as nested lists."""
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    names = {name: numbers, "np": np, "as_strided": np.lib.stride_tricks.as_strided}
    return eval(text, names)


class Cells:
    """The cells of each base that one workunit has touched so far, by iteration."""

    def __init__(self) -> None:
        self.readers: dict[str, dict[int, int]] = {}
        self.writers: dict[str, dict[int, int]] = {}

    def touches(
        self,
        numbers: Any,
        index: str,
        points: list[tuple[int, int, int]],
        scalars: Mapping[str, str],
    ) -> Touches | None:
        """What an access touches, for iterations (number, i, j); None: it leaves its view."""
        names = re.findall(r"[a-z]\w*", index)
        if any(name not in "ij" and name[0] != "s" for name in names):  # locals, views, results
            return [(ANY, cell) for cell in np.ravel(numbers).tolist()]
        text = index
        for name in names:
            if name[0] == "s":
                text = re.sub(rf"\b{name}\b", scalars[name], text)
        element, lists = _element(text), numbers.tolist()
        try:
            return [(number, element(lists, i, j)) for number, i, j in points]
        except IndexError:
            return None

    def admit(self, base: str, touches: Touches, write: bool) -> bool:
        """Note an access, unless a cell of it is another iteration's and one of them writes."""
        writers = self.writers.setdefault(base, {})
        readers = self.readers.setdefault(base, {})
        own: dict[int, int] = {}
        for point, cell in touches:
            if writers.get(cell, point) != point:
                return False
            if write and (
                readers.get(cell, point) != point
                or own.setdefault(cell, point) != point
                or point == ANY
            ):
                return False
        if write:
            writers.update(own)
        else:
            for point, cell in touches:
                if readers.setdefault(cell, point) != point:
                    readers[cell] = ANY
        return True
