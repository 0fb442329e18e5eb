"""A program on which two runs disagree; found by `python -m tests.fuzz`.

AttributeError: module 'pyfuser.codegen.cpu.unit' has no attribute '_PIECES'
"""

from tests.fuzz.program import Base, Program
from tests.fuzz.tiers import TIERS

PROGRAM = Program(
    bases=(
        Base(name="A", shape=(11,), dtype="float64", temporary=False),
        Base(name="B", shape=(10,), dtype="float64", temporary=False),
        Base(name="C", shape=(12,), dtype="float64", temporary=False),
        Base(name="S", shape=(3, 40), dtype="float32", temporary=False),
        Base(name="X", shape=(3, 40), dtype="float32", temporary=False),
        Base(name="Y", shape=(3, 40), dtype="float32", temporary=False),
        Base(name="Z", shape=(3, 40), dtype="float32", temporary=False),
        Base(name="Q", shape=(16,), dtype="int32", temporary=False),
    ),
    steps=(),
    seed=19,
    inexact=False,
)

if __name__ == "__main__":
    print(PROGRAM.listing())
    TIERS["compiled"](PROGRAM)
