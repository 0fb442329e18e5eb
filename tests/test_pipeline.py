"""The page of passes: what is on it, is left out by its name; results are the same without it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pyfuser import pipeline
from pyfuser.ir.nodes import Update
from pyfuser.ir.verify import IRError
from pyfuser.pipeline import (
    C_PASSES,
    KERNEL_PASSES,
    NAMES,
    NEST_PASSES,
    TRACE_REWRITES,
    kernel_of,
    run_passes,
)
from pyfuser.support.settings import SETTINGS
from tests.transform.test_sizes import put_and_add

ROOT = Path(__file__).parents[1]


def test_every_name_is_looked_at_once() -> None:
    """Those of rewrites, kernels and nests in their loops, all others where they would begin."""
    text = "".join(f.read_text() for f in (ROOT / "pyfuser").rglob("*.py"))
    asked = re.findall(r'left_out\("([a-z-]+)"\)', text)
    in_loop = [p.name for p in (*TRACE_REWRITES, *KERNEL_PASSES, *C_PASSES, *NEST_PASSES)]
    for name in ("split-conditions", "split-guards"):
        asked.remove(name)  # of reductions, which are no nests yet
    asked.remove("autotune")  # of cuts, and of calls apart
    assert sorted([*asked, *in_loop]) == sorted(NAMES)


def test_what_a_pass_did_is_recorded() -> None:
    group = put_and_add(10, dead=[0])
    assert kernel_of(group).passes == ("forward-stores", "remove-unused")
    assert run_passes(C_PASSES, kernel_of(group)).passes[2:] == ("widen",)


def test_a_pass_that_breaks_a_rule_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(kernel):  # type: ignore[no-untyped-def]
        last = kernel.workunit.body[-1]
        assert isinstance(last, Update)
        body = (*kernel.workunit.body, replace(last, indices=()))
        return replace(kernel, workunit=replace(kernel.workunit, body=body))

    monkeypatch.setattr(pipeline, "SETTINGS", replace(SETTINGS, debug=1))
    wrong = pipeline.KernelPass("wrong", breaks)
    with pytest.raises(IRError, match="after wrong"):
        run_passes([wrong], kernel_of(put_and_add(10)))


def run_without(names: str, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYFUSER_WITHOUT": names}
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["forward-stores", "wavefront"])
def test_without_a_pass_a_program_runs_slower_code(name: str) -> None:
    code = (
        "import pyfuser\nfrom kernels import heat2d\nstate = heat2d.setup(16)\n"
        "with pyfuser.fusing():\n    heat2d.run(state)\nheat2d.check(state, 16, 1)\n"
        "print(pyfuser.explain())"
    )
    all_passes, without = (run_without(names, "-c", code) for names in ("", name))
    assert all_passes.returncode == without.returncode == 0, without.stderr
    assert all_passes.stdout != without.stdout


@pytest.mark.parametrize("tier", ["interpret", "compiled"])
def test_without_all_passes_results_are_the_same(tier: str) -> None:
    if tier == "compiled" and shutil.which(SETTINGS.compiler) is None:
        pytest.skip("needs a C++ compiler")
    command = ["-W", "ignore", "-m", "tests.fuzz", "--tier", tier, "--programs"]
    done = run_without(",".join(NAMES), *command, "5" if tier == "compiled" else "50")
    assert done.returncode == 0 and "failed 0" in done.stdout, done.stdout + done.stderr


def test_an_unknown_name() -> None:
    done = run_without("fold", "-m", "pyfuser", "info")
    assert done.returncode == 2
    assert done.stderr.startswith("pyfuser: PYFUSER_WITHOUT=fold: no such pass; there are delin")
