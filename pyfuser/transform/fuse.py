"""Merge the workunits of a group into one kernel.

The bodies are put one after the other over shared indices. View arguments that are the same
region become one parameter, which is what lets later passes forward values between calls.
Whether the calls may share a loop is not decided here (see `plan.legality`).
"""

from __future__ import annotations

from itertools import combinations

from pyfuser.analysis.layout import byte_range, is_injective
from pyfuser.ir.canonical import all_syms, fresh
from pyfuser.ir.nodes import Accumulator, Declare, Param, Read, Stmt, Sym, Workunit
from pyfuser.ir.visit import assigned, substitute_syms
from pyfuser.trace.shape import ArgumentShape, CallShape, RegionShape, ScalarShape
from pyfuser.transform.group import GroupShape
from pyfuser.transform.kernel import Kernel, Slot


def fuse(group: GroupShape) -> Kernel:
    """One kernel for a group's calls."""
    first = group.calls[0]
    merged = _Merger(tuple(fresh(s.name, s.dtype) for s in first.workunit.indices))
    for place, call in enumerate(group.calls):
        merged.add(call, place)
    names = list(dict.fromkeys(call.workunit.name for call in group.calls))
    alone = len(group.calls) == 1
    workunit = Workunit(
        name=names[0] if alone else "_".join(["fused", *names[:4]]),
        indices=merged.indices,
        params=tuple(merged.params),
        accumulators=tuple(merged.accumulators),
        body=tuple(merged.body),
        location=first.workunit.location,
    )
    return Kernel(
        pattern=first.pattern if alone else "reduce" if merged.results else "for",
        space=first.space,
        workunit=workunit,
        slots=tuple(merged.slots),
        shapes=tuple(merged.shapes),
        results=tuple(merged.results),
        overlaps=_overlaps(merged),
        dead=frozenset(sym for sym, shape in merged.views() if shape.cluster in group.dead),
        fresh=frozenset(sym for sym, shape in merged.views() if shape.cluster in group.fresh),
    )


class _Merger:
    """Collects the parts of the fused workunit, call by call."""

    def __init__(self, indices: tuple[Sym, ...]) -> None:
        self.indices = indices
        self.params: list[Param] = []
        self.slots: list[Slot] = []
        self.shapes: list[ArgumentShape] = []
        self.accumulators: list[Accumulator] = []
        self.results: list[int] = []
        self.body: list[Stmt] = []
        self._shared: dict[object, Sym] = {}  # equal regions, equal known scalars

    def add(self, call: CallShape, place: int) -> None:
        workunit = call.workunit
        mapping = {s: fresh(s.name, s.dtype) for s in all_syms(workunit)}
        self._share_indices(workunit, mapping)
        for argument, (param, shape) in enumerate(
            zip(workunit.params, call.arguments, strict=True)
        ):
            # Scalars of equal value share a parameter only if the user gave them one name, too.
            key = shape if isinstance(shape, RegionShape) else (shape, param.sym.name)
            known = self._shared.get(key)
            if known is not None:
                mapping[param.sym] = known
                continue
            sym = mapping[param.sym]
            if isinstance(shape, RegionShape) or _is_known(shape):
                self._shared[key] = sym
            self.params.append(Param(sym, param.rank))
            self.slots.append(Slot(place, argument))
            self.shapes.append(shape)
        for accumulator in workunit.accumulators:
            last = accumulator.last_pass
            self.accumulators.append(
                Accumulator(mapping[accumulator.sym], None if last is None else mapping[last])
            )
            self.results.append(place)
        self.body.extend(substitute_syms(workunit.body, mapping))

    def _share_indices(self, workunit: Workunit, mapping: dict[Sym, Sym]) -> None:
        """Map the call's indices to the shared ones; an index it assigns to becomes a local."""
        changed = assigned(workunit.body)
        for own, shared in zip(workunit.indices, self.indices, strict=True):
            if own in changed:
                self.body.append(Declare(mapping[own], Read(shared)))
            else:
                mapping[own] = shared

    def views(self) -> list[tuple[Sym, RegionShape]]:
        return [(sym, s) for s, sym in self._shared.items() if isinstance(s, RegionShape)]


def _is_known(shape: ArgumentShape) -> bool:
    """Whether equal shapes are equal scalars."""
    return isinstance(shape, ScalarShape) and shape.value is not None


def _overlaps(merged: _Merger) -> frozenset[frozenset[Sym]]:
    pairs = {
        frozenset((sym,))
        for sym, shape in merged.views()
        if not is_injective(shape.strides, shape.shape, shape.dtype.size)
    }
    for (a, left), (b, right) in combinations(merged.views(), 2):
        if left.cluster != right.cluster:
            continue
        (low, high), (other_low, other_high) = byte_range(left), byte_range(right)
        if low <= other_high and other_low <= high:
            pairs.add(frozenset((a, b)))
    return frozenset(pairs)
