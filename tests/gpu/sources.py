"""Every kernel that the programs in kernels/ launch, fused and unfused."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyfuser
from pyfuser.compare import serve
from pyfuser.engine import native
from pyfuser.nest.spec import KernelSpec, SweepSpec
from tests.sessions import fresh

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "kernels").glob("*.py"))


def specs_of_program(path: Path) -> list[KernelSpec]:
    """The loops of all launches of one fused and one unfused run, at the small size."""
    with fresh(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        for mode in (pyfuser.fusing, pyfuser.unfused):
            module = serve.load(path)
            with mode():
                module.run(module.setup(module.SIZES["small"]))
                pyfuser.sync()
        launchables = list(native.KERNELS)
    found: dict[KernelSpec, None] = {}
    for spec in launchables:
        loops = spec.stages if isinstance(spec, SweepSpec) else (spec,)
        found.update(dict.fromkeys(loops))
    return list(found)
