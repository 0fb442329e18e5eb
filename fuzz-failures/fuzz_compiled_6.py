"""A program on which two runs disagree; found by `python -m tests.fuzz`.

AttributeError: module 'pyfuser.codegen.cpu.unit' has no attribute '_PIECES'
"""

from tests.fuzz.program import Base, Program
from tests.fuzz.tiers import TIERS

PROGRAM = Program(
    bases=(
        Base(name="A", shape=(10,), dtype="float64", temporary=False),
        Base(name="B", shape=(15,), dtype="float64", temporary=False),
        Base(name="H", shape=(15,), dtype="float32", temporary=False),
        Base(name="J", shape=(15,), dtype="float32", temporary=False),
        Base(name="K", shape=(15,), dtype="float32", temporary=False),
        Base(name="N", shape=(15,), dtype="float32", temporary=False),
        Base(name="Q", shape=(16,), dtype="int32", temporary=False),
    ),
    steps=(),
    seed=6,
    inexact=False,
)

if __name__ == "__main__":
    print(PROGRAM.listing())
    TIERS["compiled"](PROGRAM)
