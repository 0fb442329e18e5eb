"""What programs load that never compile anything: importing is most of what they wait for."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "pyfuser.codegen", "pyfuser.pipeline", "pyfuser.nest.passes", "pyfuser.plan.partition",
    "pyfuser.transform.fuse", "pyfuser.lower.lower", "pyfuser.engine.native",
    "pyfuser.runtime.building", "pyfuser.runtime.eager", "pyfuser.report", "platformdirs",
    "hashlib", "json", "numpy.random",
)  # fmt: skip

RUNS = """
x = np.arange(20_000.0)
y = np.where(x > 3, x * 2 + 1, x)
assert float(y.sum()) == 399_999_990.0
"""


def loaded(code: str) -> set[str]:
    """Of HEAVY, the modules that a program has loaded at its end."""
    shown = f"{code}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", shown], capture_output=True, text=True, check=True, timeout=120
    )
    return set(HEAVY) & set(run.stdout.split())


def test_numpy_programs_load_nothing_that_plans_or_prints() -> None:
    assert loaded("import pyfuser.numpy as np") == set()
    assert loaded(f"import pyfuser.numpy as np\n{RUNS}") == set()


def test_what_is_looked_for_can_be_loaded() -> None:
    assert loaded("".join(f"import {name}\n" for name in HEAVY)) == set(HEAVY)
