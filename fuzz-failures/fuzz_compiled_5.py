"""A program on which two runs disagree; found by `python -m tests.fuzz`.

AttributeError: module 'pyfuser.codegen.cpu.unit' has no attribute '_PIECES'
"""

from tests.fuzz.program import Base, Program
from tests.fuzz.tiers import TIERS

PROGRAM = Program(
    bases=(
        Base(name="A", shape=(13,), dtype="float64", temporary=False),
        Base(name="B", shape=(26,), dtype="float64", temporary=False),
        Base(name="C", shape=(26,), dtype="float64", temporary=False),
        Base(name="O", shape=(64,), dtype="float64", temporary=False),
        Base(name="P", shape=(64,), dtype="float64", temporary=False),
        Base(name="R", shape=(64,), dtype="float64", temporary=False),
        Base(name="I", shape=(64,), dtype="int32", temporary=False),
        Base(name="Q", shape=(16,), dtype="int64", temporary=False),
    ),
    steps=(),
    seed=5,
    inexact=False,
)

if __name__ == "__main__":
    print(PROGRAM.listing())
    TIERS["compiled"](PROGRAM)
