"""A program on which two runs disagree; found by `python -m tests.fuzz`.

AttributeError: module 'pyfuser.codegen.cpu.unit' has no attribute '_PIECES'
"""

from tests.fuzz.program import Base, Program
from tests.fuzz.tiers import TIERS

PROGRAM = Program(
    bases=(
        Base(name="A", shape=(7, 7), dtype="float32", temporary=False),
        Base(name="B", shape=(4, 4), dtype="int16", temporary=False),
        Base(name="C", shape=(7, 7), dtype="uint16", temporary=False),
        Base(name="Q", shape=(16,), dtype="int32", temporary=False),
    ),
    steps=(),
    seed=4,
    inexact=False,
)

if __name__ == "__main__":
    print(PROGRAM.listing())
    TIERS["compiled"](PROGRAM)
