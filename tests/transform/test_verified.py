"""In tests, what every pass makes of a kernel is verified."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pyfuser import pipeline
from pyfuser.ir.nodes import Break
from pyfuser.ir.verify import IRError
from pyfuser.transform.kernel import Kernel
from tests.transform.build import Program


def double(i, x):
    x[i] *= 2.0


def broken(kernel: Kernel) -> Kernel:
    return replace(kernel, workunit=replace(kernel.workunit, body=(Break(),)))


def test_a_pass_that_breaks_a_rule_is_named() -> None:
    program = Program(4)
    program.call(double, x=np.ones(4))
    kernel = program.kernel()
    assert pipeline.run_passes(pipeline.KERNEL_PASSES, kernel)
    with pytest.raises(IRError, match=r"after breaks: .*outside of a loop"):
        pipeline.run_passes([pipeline.KernelPass("breaks", broken)], kernel)
