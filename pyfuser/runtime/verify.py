"""PYFUSER_VERIFY=1: run each trace unfused on copies as well, and compare bit for bit.

Reductions are compared bit for bit too, as the order of their additions does not depend on what
they are fused with. Elements that are summed by atomic updates are compared within the bound that
holds for any order (see `checks.scattered`). With PYFUSER_FASTMATH=1 there is nothing to compare:
what the compiler makes of floating-point values depends on the code around.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pyfuser.ir.effects import atomics
from pyfuser.ir.nodes import Workunit
from pyfuser.ir.visit import sym_of
from pyfuser.support.caches import cached
from pyfuser.support.errors import VerificationError
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import Call, buffers_of
from pyfuser.trace.images import has_foreign
from pyfuser.trace.memory import Array, Region

if TYPE_CHECKING:
    from pyfuser.checks.script import Recording


def verifying(
    calls: Sequence[Call], run_unfused: Callable[[Call], None]
) -> contextlib.AbstractContextManager[None]:
    """`verified` with PYFUSER_VERIFY=1, unless memory is not ours to copy; else nothing."""
    if SETTINGS.verify and not has_foreign(buffers_of(calls)):
        return verified(calls, run_unfused)
    return _NOTHING


_NOTHING = contextlib.nullcontext()


@contextlib.contextmanager
def verified(calls: Sequence[Call], run_unfused: Callable[[Call], None]) -> Iterator[None]:
    """Around a fused run: run the calls one by one on copies first, and compare afterwards.

    Raises VerificationError at the first argument or result that differs, and writes a script that
    reproduces it to the current directory. Two NaNs are equal whatever their payload. Temporaries
    that the program can no longer reach are not compared. Takes as much memory again as the calls
    touch, twice.
    """
    from pyfuser.checks.image import Image
    from pyfuser.checks.scattered import scatter_bounds
    from pyfuser.checks.script import Recording

    recording = Recording(calls)
    image = Image(calls)
    copies = [image.copy(call) for call in calls]
    scattered = scatter_bounds(calls, run_unfused)
    for copied in copies:
        run_unfused(copied)
    yield
    for n, (call, copied) in enumerate(zip(calls, copies, strict=True)):
        bounds = {k: b for (m, k), b in scattered.items() if m == n}
        difference = _bits_differ(call, copied, bounds)
        if difference is not None:
            message = f"{call.location}: {call.name!r} fused gives another {difference}"
            if any(_adds_atomically(other.workunit) for other in calls):
                message += (
                    "; atomic updates of floating-point numbers are added in another order when "
                    "they are fused, so that last bits may differ"
                )
            raise VerificationError(f"{message}. {_reproduced(recording, message)}")


@cached(1024)
def _adds_atomically(workunit: Workunit) -> bool:
    """Whether a workunit updates floating-point elements whose value depends on the order."""
    kinds = (sym.dtype for sym in map(sym_of, atomics(workunit.body)) if sym is not None)
    return not all(dtype.is_integer for dtype in kinds)


def _reproduced(recording: Recording, message: str) -> str:
    """Write the script, and say where; whatever fails here must not hide the difference."""
    advice = "PYFUSER_FUSION=0 runs the program unfused"
    try:
        path = recording.write(Path.cwd(), message)
    except Exception as error:
        return f"Please report this with the program (no script: {error!r}); {advice}"
    if path is None:
        return "This is what the script was written for"
    data = path.with_suffix(".npz").name
    return (
        f"Please report this with {path.name} and {data}, which were written to {path.parent} and "
        f"reproduce it; {advice}"
    )


def _bits_differ(call: Call, copied: Call, bounds: Mapping[int, Array]) -> str | None:
    """The first argument or result that differs, in words.

    bounds: by argument, how far its elements may be apart if not bit for bit equal.
    """
    for place, (param, argument, other) in enumerate(
        zip(call.workunit.params, call.arguments, copied.arguments, strict=True)
    ):
        if isinstance(argument, Region) and argument.buffer.reachable:
            assert isinstance(other, Region)
            found = _arrays_differ(argument.array(), other.array(), bounds.get(place))
            if found:
                return f"{param.sym.name!r}: {found}"
    if call.result is not None and copied.result is not None:
        fused, unfused = np.asarray(call.result.result()), np.asarray(copied.result.result())
        found = _arrays_differ(fused, unfused)
        if found:
            return f"result: {found}"
    return None


def _arrays_differ(fused: Array, unfused: Array, bound: Array | None = None) -> str | None:
    with np.errstate(invalid="ignore"):
        if bound is not None:
            same = (fused == unfused) | (np.abs(fused - unfused) <= bound) | ~np.isfinite(bound)
        else:
            same = fused == unfused
        if fused.dtype.kind == "f" and bound is None:
            same &= np.signbit(fused) == np.signbit(unfused)
        same |= (fused != fused) & (unfused != unfused)
    if np.all(same):
        return None
    where = tuple(int(i) for i in np.argwhere(~np.atleast_1d(same))[0])
    values = np.atleast_1d(fused)[where], np.atleast_1d(unfused)[where]
    return f"element {list(where)} is {values[0]!r}, unfused {values[1]!r}"
