"""The tier of GPUs: a compiled program on CUDA, or on the stand-in for CuPy where there is none."""

from __future__ import annotations

from typing import Any

import pyfuser
from pyfuser.plan import legality
from tests.fuzz import oracle
from tests.fuzz.compiled import new_view, run_forced, takes_array
from tests.fuzz.harness import Outcome, compare, lowered, run_unfused
from tests.fuzz.inexact import check_inexact
from tests.fuzz.oracle import Rejected
from tests.fuzz.program import Base, Program
from tests.gpu.conftest import on_gpu

_INEXACT = 2  # one program in so many is compared with itself unfused, bit for bit


def check_on_device(program: Program) -> Outcome:
    """Compare `pk.parallel_*` on a GPU with the oracle, or fused with unfused.

    Needs CuPy, or a C++ compiler. Raises Rejected and Mismatch as `harness.check_interpreted` does.
    """
    if any(takes_array(program, base) for base in program.bases):
        raise Rejected("a part of a NumPy array, which GPUs refuse")
    with on_gpu():
        try:
            if program.seed % _INEXACT == 0:
                return check_inexact(program, _storage)
            return _check_exact(program)
        finally:
            pyfuser.discard()  # what failed must not run once more, without a GPU


def _check_exact(program: Program) -> Outcome:
    expected = oracle.run(program)
    workunits = lowered(program, expected[1])
    run_unfused(program, workunits, 0)  # raises Rejected for races
    pairs = zip(program.calls, workunits, strict=True)
    if any(call.pattern == "scan" and legality._writes_early(w) for call, w in pairs):
        raise Rejected("a scan that writes in both passes, where the oracle has one")
    found, outcome = run_forced(program, small_tiles=False, storage=_storage)
    compare(program, expected, found, "on a GPU", exact=False)
    return outcome


def _storage(pk: Any, program: Program, base: Base, values: Any) -> Any:
    """A View that may stay on the GPU; or one of an array, which is copied for each flush."""
    if base.temporary or (program.seed + ord(base.name)) % 3:
        return new_view(pk, base, values)
    return pk.array(values)
