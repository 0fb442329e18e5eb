"""Workunits lowered for the types of a call's arguments; kept with the workunit."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyfuser.frontends.embedded import arguments
from pyfuser.frontends.embedded.arguments import FUTURE, INT64
from pyfuser.frontends.embedded.changing import watch
from pyfuser.frontends.embedded.decorators import WorkunitState
from pyfuser.frontends.embedded.temporaries import warn_of_temporaries
from pyfuser.frontends.embedded.view_memory import DTYPES, READ_ONLY
from pyfuser.ir import nodes
from pyfuser.ir.divisions import scalar_divisors
from pyfuser.ir.dtypes import DType
from pyfuser.ir.visit import all_expressions, written
from pyfuser.lower.free import places, unwrapped
from pyfuser.lower.types import ViewType
from pyfuser.runtime.turns import takes_turns
from pyfuser.support.errors import ArgumentError
from pyfuser.trace.call import Space

if TYPE_CHECKING:
    from pyfuser.lower.lower import Lowered

MAX_SIBLINGS = 64

WIDE = 1 << 8  # in the first part of the key: indices are 64 bits
TEAM = 9  # above this bit of it: the size of a TeamPolicy's teams


class Binding:
    """A workunit lowered for one combination of argument types.

    pick: arguments in order of the caller's keywords -> in order of the kernel's parameters.
    ranges: (place, least, greatest, name) of integers whose type does not bound them enough.
    futures: places of Futures that cannot stay unknown. prints: it calls printf. divides: it
    divides integers by what only its iterations know; divisors: places, in the kernel's order, of
    numbers it divides integers by, and of steps. siblings: all bindings of the same types, which
    differ in the free values they took. unsettled: whether `settle` has something to do. looked_at:
    whether a call was looked at for results that are lost. nonzero: the places of `divisors` among
    the caller's arguments, with their types.
    """

    __slots__ = (
        "divides", "divisors", "free", "futures", "looked_at", "lowered", "nonzero", "pick",
        "prints", "ranges", "result", "siblings", "unsettled", "workunit",
    )  # fmt: skip

    def __init__(self, lowered: Lowered, names: tuple[str, ...], codes: dict[str, int]) -> None:
        self.lowered = lowered
        self.workunit = lowered.workunit
        self.free = bool(lowered.free)
        self.prints = _prints(lowered.workunit)
        self.divisors, self.divides = scalar_divisors(lowered.workunit)
        self.siblings: list[Binding] = [self]
        self.unsettled = True
        self.looked_at = False
        self.pick = _picker(lowered.names, names)
        accumulators = self.workunit.accumulators
        self.result = accumulators[0].sym.dtype if accumulators else DType.FLOAT64
        self.ranges: list[tuple[int, int, int, str]] = []
        self.futures: list[int] = []
        self.nonzero = {
            names.index(lowered.names[n]): self.workunit.params[n].sym.dtype for n in self.divisors
        }
        for param, name in zip(self.workunit.params, lowered.names, strict=True):
            dtype, code = param.sym.dtype, codes[name]
            if param.rank:
                continue
            if code & FUTURE and not dtype.is_float:
                self.futures.append(names.index(name))
            if dtype.is_integer and dtype is not DType.BOOL and not _fits(code, dtype):
                self.ranges.append((names.index(name), *dtype.range(), name))


def _fits(code: int, dtype: DType) -> bool:
    """Whether every value of an argument's type is one of `dtype`; a Python int has no bounds."""
    given = DTYPES[code & 31]
    if code == INT64 or not given.is_integer:
        return False
    return dtype.range()[0] <= given.range()[0] and given.range()[1] <= dtype.range()[1]


def _picker(wanted: tuple[str, ...], given: tuple[str, ...]) -> Callable[[list[Any]], Any]:
    if wanted == given:
        return tuple
    order = [given.index(name) for name in wanted]
    if len(order) > 1:
        return operator.itemgetter(*order)
    return lambda values: tuple(values[n] for n in order)


def binding_of(state: WorkunitState, space: Space, key: tuple[Any, ...]) -> Binding:
    """The workunit lowered for the types of a key and the present values of its free names."""
    binding: Binding | None = state.bindings.get(key)
    if binding is None:
        binding = state.bindings[key] = _lower(state, space, key)
    elif binding.free and not _is_unchanged(state, binding):
        siblings = binding.siblings
        for binding in siblings:
            if _is_unchanged(state, binding):
                break
        else:
            watch(state, [each.lowered.free for each in siblings], binding.workunit)
            binding = _lower(state, space, key)
            if len(siblings) >= MAX_SIBLINGS:
                del siblings[0]
            siblings.append(binding)
            binding.siblings = siblings
        state.bindings[key] = binding
    return binding


def _is_unchanged(state: WorkunitState, binding: Binding) -> bool:
    from pyfuser.lower.lower import free_values_unchanged

    return free_values_unchanged(state.function, binding.lowered)


def described(state: WorkunitState, key: tuple[Any, ...]) -> Any:
    """What the extension must know of a binding that is there; None if Python is to see to calls.

    Its workunit, the type of its result, the order of its arguments, ranges of integers, the places
    of what it took from outside, whether it gives the same bits where it is fused and where it
    runs alone, and whether it neither prints nor fails.
    """
    binding: Binding | None = state.bindings.get(key)
    if binding is None or binding.futures or state.changing:
        return None
    taken, classes = binding.lowered.free, binding.lowered.classes
    free = places(unwrapped(state.function), taken, classes)
    if free is None or any(greatest >= 1 << 63 for _, _, greatest, _ in binding.ranges):
        return None
    names = key[2::2]
    order = tuple(names.index(name) for name in binding.lowered.names)
    ranges = {place: (least, greatest) for place, least, greatest, _ in binding.ranges}
    for place, dtype in binding.nonzero.items():
        ranges[place] = 1, ranges.get(place, dtype.range())[1]
    bounded = tuple((place, *limits) for place, limits in ranges.items())
    silent = not (binding.prints or binding.divides or binding.divisors)
    unit = binding.workunit
    return unit, binding.result, order, bounded, free, takes_turns(unit), silent


def _lower(state: WorkunitState, space: Space, key: tuple[Any, ...]) -> Binding:
    """Lower a workunit for the argument types of a key."""
    from pyfuser.lower.lower import lower  # which programs without workunits do not need

    names = key[2::2]
    codes = dict(zip(names, key[3::2], strict=True))
    types = {name: arguments.bound_type(code) for name, code in codes.items()}
    for name in state.atomic.intersection(types):
        bound = types[name]
        if isinstance(bound, ViewType):
            types[name] = replace(bound, atomic=True)
    index = DType.INT64 if key[1] & WIDE else DType.INT32
    lowered = lower(
        state.function, key[0], len(space.begin), types, index, state.objects, key[1] >> TEAM
    )
    changed = written(lowered.workunit.body)
    for param, name in zip(lowered.workunit.params, lowered.names, strict=True):
        if codes[name] & READ_ONLY and param.sym in changed:
            raise ArgumentError(
                f"argument {name!r}: workunit {state.function.__name__!r} writes it, but the array "
                "is read-only, as all of JAX's are, and pandas' and polars'; pass a copy, as "
                "np.array(...) makes one, or make a NumPy array writeable: setflags(write=True)"
            )
    return Binding(lowered, names, codes)


def _prints(workunit: nodes.Workunit) -> bool:
    calls = (e for e in all_expressions(workunit.body) if isinstance(e, nodes.Call))
    return any(call.name == "printf" for call in calls)


def settle(binding: Binding, values: list[Any]) -> None:
    """Check integers against their parameter's type; compute Futures of a float for an integer.

    The first call is looked at for results that are lost.
    """
    if not (binding.ranges or binding.futures):
        binding.unsettled = False
    for place in binding.futures:
        values[place] = values[place].result()
    for place, least, greatest, name in binding.ranges:
        if not least <= values[place] <= greatest:
            raise ArgumentError(
                f"argument {name!r}: {values[place]} is not between {least} and {greatest}, the "
                f"range of its type: annotate it, as in `{name}: pk.int64`"
            )
    if not binding.looked_at:
        binding.looked_at = True
        warn_of_temporaries(binding.workunit, binding.lowered.names, binding.pick(values))
