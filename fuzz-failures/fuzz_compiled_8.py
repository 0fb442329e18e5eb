"""A program on which two runs disagree; found by `python -m tests.fuzz`.

AttributeError: module 'pyfuser.codegen.cpu.unit' has no attribute '_PIECES'
"""

from tests.fuzz.program import Base, Program
from tests.fuzz.tiers import TIERS

PROGRAM = Program(
    bases=(
        Base(name="A", shape=(8,), dtype="int64", temporary=False),
        Base(name="B", shape=(8,), dtype="float64", temporary=False),
        Base(name="S", shape=(4, 33), dtype="uint16", temporary=False),
        Base(name="U", shape=(4, 33), dtype="bool", temporary=False),
        Base(name="V", shape=(4, 33), dtype="int16", temporary=False),
        Base(name="W", shape=(4, 33), dtype="int8", temporary=False),
        Base(name="Q", shape=(16,), dtype="int32", temporary=False),
    ),
    steps=(),
    seed=8,
    inexact=False,
)

if __name__ == "__main__":
    print(PROGRAM.listing())
    TIERS["compiled"](PROGRAM)
