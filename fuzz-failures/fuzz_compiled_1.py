"""A program on which two runs disagree; found by `python -m tests.fuzz`.

AttributeError: module 'pyfuser.codegen.cpu.unit' has no attribute '_PIECES'
"""

from tests.fuzz.program import Base, Program
from tests.fuzz.tiers import TIERS

PROGRAM = Program(
    bases=(
        Base(name="A", shape=(10,), dtype="int16", temporary=False),
        Base(name="B", shape=(13,), dtype="float64", temporary=False),
        Base(name="C", shape=(20,), dtype="float64", temporary=False),
        Base(name="D", shape=(24,), dtype="uint32", temporary=False),
        Base(name="T", shape=(11,), dtype="float64", temporary=False),
        Base(name="U", shape=(11,), dtype="float64", temporary=False),
        Base(name="V", shape=(11,), dtype="float64", temporary=False),
        Base(name="W", shape=(11,), dtype="float64", temporary=False),
        Base(name="Q", shape=(16,), dtype="int32", temporary=False),
    ),
    steps=(),
    seed=1,
    inexact=False,
)

if __name__ == "__main__":
    print(PROGRAM.listing())
    TIERS["compiled"](PROGRAM)
