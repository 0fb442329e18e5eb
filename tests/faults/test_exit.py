"""The end of a process: whatever is destroyed first, it ends without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.conftest import Machine

PROGRAM = """
import ctypes, json, decimal
from pyfuser.engine.gpu.results import Results
from pyfuser.trace.images import Image

class Holder:
    def __init__(self):
        self.view = pk.View([100_000], pk.double)
        pk.parallel_for(SIZE, increment, x=self.view)
        self.me = self  # only the garbage collector frees it

def local(n):
    scope = {}
    source = "@pyfuser.fuse\\n@pk.workunit\\ndef local(i, x):\\n    x[i] += 1\\n"
    exec(compile(source, __file__, "exec"), globals() | {"__name__": "local"}, scope)
    return scope["local"]

class Gone:
    def release(self, *_):
        raise SystemError("the device's library is gone")
    give_slot = release
    def stream(self):
        return 0
    def take_slot(self, *_):
        return 64

image = Image(Gone(), object(), 64)
image.stream = 1
for place in (json, decimal, sys, os, np):
    place.kept = [Holder(), image, Results(Gone(), 0, 1)]
del image
float(pk.parallel_reduce(SIZE, total, x=json.kept[0].view))

pyfuser.sync()
sys.kept_functions = [increment, total]
for name, module in list(sys.modules.items()):  # none is freed: they lose their names, in turn
    if name.split(".")[0] in KEPT:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))
"""


@pytest.mark.parametrize(
    "kept", ["()", "('pyfuser', 'tests')", "('json', 'decimal')", "sys.modules"]
)
def test_nothing_is_printed_when_modules_die(kept: str, machine: Machine, tmp_path: Path) -> None:
    text = f"__file__ = {str(tmp_path / 'x.py')!r}\nKEPT = {kept}\n{PROGRAM}"
    assert machine.output(text) == ("", "")


def test_what_failed_is_still_said(machine: Machine) -> None:
    """The twin: an error of the last flush is no noise."""
    program = "x = pk.View([1 << 45], pk.double)\npk.parallel_for(SIZE, increment, x=x)"
    process = machine.start(program)
    _, text = process.communicate(timeout=60)
    assert "calls that did not run" in text and "no memory for a View" in text
