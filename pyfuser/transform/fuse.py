"""Merge the workunits of a group into one kernel.

The bodies are put one after the other over shared indices; those behind a scan's run in its last
pass (see `plan.fuse_into_scan`). View arguments that are the same region become one parameter,
which is what lets later passes forward values between calls; so do parts of one array and all of
it (see `transform.parts`).
Whether the calls may share a loop is not decided here (see `plan.legality`).

What the merged code is follows from the group's form alone, which has no sizes in it: which
arguments are one, which overlap, and whose contents matter. So groups that differ in sizes only
are merged once, and so are those passes applied that look at nothing else (see `pipeline`).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from pyfuser.analysis.layout import byte_range, is_injective
from pyfuser.analysis.sums import with_axes
from pyfuser.ir.canonical import all_syms, fresh
from pyfuser.ir.nodes import Accumulator, Body, Declare, If, Param, Read, Stmt, Sym, Workunit
from pyfuser.ir.visit import assigned, substitute_syms
from pyfuser.support.caches import cached
from pyfuser.trace.call import Space
from pyfuser.trace.shape import ArgumentShape, RegionShape, ScalarShape
from pyfuser.transform.group import GroupShape
from pyfuser.transform.kernel import Kernel, Slot
from pyfuser.transform.parts import Part, in_wholes, wholes_of

MAX_FORMS = 2048


class CallForm(NamedTuple):
    """A call of a group; `params[k]` is the number of the kernel's parameter for argument k.

    parts: arguments that are parts of their parameters, and where their elements are in these.
    """

    pattern: str
    workunit: Workunit
    params: tuple[int, ...]
    parts: tuple[tuple[int, Part], ...] = ()


class Form(NamedTuple):
    """A group without sizes; views are given by their parameters' numbers.

    overlaps: pairs of views, and single ones, as in `Kernel`. dead, fresh: as in `Kernel`. slots:
    which argument each parameter takes.
    """

    calls: tuple[CallForm, ...]
    slots: tuple[Slot, ...]
    overlaps: frozenset[frozenset[int]]
    dead: frozenset[int]
    fresh: frozenset[int]


def fuse(group: GroupShape) -> Kernel:
    """One kernel for a group's calls."""
    return with_sizes(merged(form_of(group)), group)


# law
def form_of(group: GroupShape) -> Form:
    """The form of a group: equal regions are one parameter, and so are equal known scalars."""
    shared: dict[object, int] = {}
    views: dict[int, RegionShape] = {}
    slots: list[Slot] = []
    calls = []
    wholes = wholes_of(group)
    for place, call in enumerate(group.calls):
        numbers, parts = [], []
        for argument, (param, shape) in enumerate(
            zip(call.workunit.params, call.arguments, strict=True)
        ):
            own = Slot(place, argument)
            key, slot, part = wholes.get(own) or (shape, own, None)
            is_view = isinstance(key, RegionShape)
            # Scalars of equal value share a parameter only if the user gave them one name, too.
            name = key if is_view else (key, param.sym.name)
            number = shared.get(name)
            if number is None:
                number = len(slots)
                slots.append(slot)
                if isinstance(key, RegionShape):
                    views[number] = key
                if is_view or _is_known(shape):
                    shared[name] = number
            numbers.append(number)
            if part is not None:
                parts.append((argument, part))
        calls.append(CallForm(call.pattern, with_axes(call), tuple(numbers), tuple(parts)))
    return Form(
        tuple(calls),
        tuple(slots),
        _overlaps(views),
        frozenset(n for n, shape in views.items() if shape.cluster in group.dead),
        frozenset(n for n, shape in views.items() if shape.cluster in group.fresh),
    )


def with_sizes(kernel: Kernel, group: GroupShape) -> Kernel:
    """The kernel of a group's form, for the sizes of the group."""
    calls = group.calls
    shapes = tuple([calls[slot.call].arguments[slot.argument] for slot in kernel.slots])
    return replace(kernel, space=calls[0].space, shapes=shapes)


@cached(MAX_FORMS)
def merged(form: Form) -> Kernel:
    """The kernel of a form: of its space and of its arguments' shapes nothing is known."""
    first = form.calls[0].workunit
    merger = _Merger(tuple(fresh(s.name, s.dtype) for s in first.indices))
    for place, call in enumerate(form.calls):
        merger.add(call, place)
    names = list(dict.fromkeys(call.workunit.name for call in form.calls))
    alone = len(form.calls) == 1
    workunit = Workunit(
        name=names[0] if alone else "_".join(["fused", *names[:4]]),
        indices=merger.indices,
        params=tuple(merger.params),
        accumulators=tuple(merger.accumulators),
        body=tuple(merger.body),
        location=first.location,
        threads=first.threads,  # of all of them: see `legality`
    )
    syms = [param.sym for param in merger.params]
    pattern = form.calls[0].pattern
    if not alone and pattern != "scan":
        pattern = "reduce" if merger.results else "for"
    return Kernel(
        pattern=pattern,
        space=Space((), ()),
        workunit=workunit,
        slots=form.slots,
        shapes=tuple(ScalarShape(sym.dtype, None) for sym in syms),
        results=tuple(merger.results),
        overlaps=frozenset(frozenset(syms[n] for n in views) for views in form.overlaps),
        dead=frozenset(syms[n] for n in form.dead),
        fresh=frozenset(syms[n] for n in form.fresh),
    )


class _Merger:
    """Collects the parts of the fused workunit, call by call."""

    def __init__(self, indices: tuple[Sym, ...]) -> None:
        self.indices = indices
        self.params: list[Param] = []
        self.accumulators: list[Accumulator] = []
        self.results: list[int] = []
        self.body: list[Stmt] = []

    # law
    def add(self, call: CallForm, place: int) -> None:
        workunit = in_wholes(call.workunit, call.parts)
        mapping = {s: fresh(s.name, s.dtype) for s in all_syms(workunit)}
        self._share_indices(workunit, mapping)
        for param, number in zip(workunit.params, call.params, strict=True):
            if number < len(self.params):
                mapping[param.sym] = self.params[number].sym
                continue
            self.params.append(Param(mapping[param.sym], param.rank))
        for accumulator in workunit.accumulators:
            last = accumulator.last_pass
            self.accumulators.append(
                replace(
                    accumulator,
                    sym=mapping[accumulator.sym],
                    last_pass=None if last is None else mapping[last],
                )
            )
            self.results.append(place)
        body = substitute_syms(workunit.body, mapping)
        flag = self.accumulators[0].last_pass if self.accumulators else None
        if flag is None or not place:
            self.body.extend(body)
        else:
            self._add_to_last_pass(flag, body)

    def _add_to_last_pass(self, flag: Sym, body: Body) -> None:
        end = self.body[-1] if self.body else None
        if isinstance(end, If) and end.condition == Read(flag) and not end.orelse:
            self.body[-1] = replace(end, then=(*end.then, *body))
        else:
            self.body.append(If(Read(flag), body, ()))

    # law
    def _share_indices(self, workunit: Workunit, mapping: dict[Sym, Sym]) -> None:
        """Map the call's indices to the shared ones; an index it assigns to becomes a local."""
        changed = assigned(workunit.body)
        for own, shared in zip(workunit.indices, self.indices, strict=True):
            if own in changed:
                self.body.append(Declare(mapping[own], Read(shared)))
            else:
                mapping[own] = shared


def _is_known(shape: ArgumentShape) -> bool:
    """Whether equal shapes are equal scalars."""
    return isinstance(shape, ScalarShape) and shape.value is not None


# law
def _overlaps(views: dict[int, RegionShape]) -> frozenset[frozenset[int]]:
    pairs = {
        frozenset((n,))
        for n, shape in views.items()
        if not is_injective(shape.strides, shape.shape, shape.dtype.size)
    }
    for (a, left), (b, right) in combinations(views.items(), 2):
        if left.cluster != right.cluster:
            continue
        (low, high), (other_low, other_high) = byte_range(left), byte_range(right)
        if low <= other_high and other_low <= high:
            pairs.add(frozenset((a, b)))
    return frozenset(pairs)
