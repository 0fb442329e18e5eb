"""Renumbering Syms, so that kernels that differ only in names are one cache entry."""

from __future__ import annotations

import itertools
from dataclasses import replace

from pyfuser.ir.nodes import Accumulator, Param, Sym, Workunit
from pyfuser.ir.visit import declared, substitute_syms
from pyfuser.support.caches import cached

MAX_WORKUNITS = 1024  # whose canonical form is kept

_uids = itertools.count(1)


def fresh(name: str, dtype: object) -> Sym:
    """A Sym that no other part of the process holds."""
    return Sym(name, next(_uids), dtype)  # type: ignore[arg-type]


def rename(workunit: Workunit, mapping: dict[Sym, Sym]) -> Workunit:
    """The workunit with every Sym of the mapping replaced, wherever it stands."""
    get = mapping.get
    return replace(
        workunit,
        indices=tuple(get(s, s) for s in workunit.indices),
        params=tuple(Param(get(p.sym, p.sym), p.rank) for p in workunit.params),
        accumulators=tuple(
            Accumulator(
                get(a.sym, a.sym),
                None if a.last_pass is None else get(a.last_pass, a.last_pass),
                a.flat,
                a.along,
            )
            for a in workunit.accumulators
        ),
        body=substitute_syms(workunit.body, mapping),
    )


@cached(MAX_WORKUNITS)
def all_syms(workunit: Workunit) -> tuple[Sym, ...]:
    """Every Sym a workunit binds, in order of appearance."""
    syms = list(workunit.indices)
    syms += [param.sym for param in workunit.params]
    for accumulator in workunit.accumulators:
        syms.append(accumulator.sym)
        if accumulator.last_pass is not None:
            syms.append(accumulator.last_pass)
    return (*syms, *declared(workunit.body))


@cached(MAX_WORKUNITS)
def canonical(workunit: Workunit) -> Workunit:
    """Numbered Syms without the user's names, no name, no location: the structural cache key."""
    mapping = {s: Sym("", n, s.dtype) for n, s in enumerate(all_syms(workunit))}
    return replace(rename(workunit, mapping), name="", location=None)
