"""A program on which two runs disagree; found by `python -m tests.fuzz`.

AttributeError: module 'pyfuser.codegen.cpu.unit' has no attribute '_PIECES'
"""

from tests.fuzz.program import Base, Program
from tests.fuzz.tiers import TIERS

PROGRAM = Program(
    bases=(
        Base(name="A", shape=(9,), dtype="float64", temporary=False),
        Base(name="B", shape=(12,), dtype="float64", temporary=False),
        Base(name="C", shape=(9,), dtype="float64", temporary=False),
        Base(name="T", shape=(12,), dtype="float64", temporary=False),
        Base(name="I", shape=(11,), dtype="int32", temporary=False),
        Base(name="J", shape=(11,), dtype="int32", temporary=False),
        Base(name="K", shape=(11,), dtype="float64", temporary=False),
        Base(name="N", shape=(11,), dtype="float64", temporary=False),
        Base(name="O", shape=(11,), dtype="float64", temporary=False),
        Base(name="R", shape=(11,), dtype="float64", temporary=False),
        Base(name="H", shape=(11,), dtype="int32", temporary=False),
        Base(name="S", shape=(3, 9), dtype="uint64", temporary=False),
        Base(name="U", shape=(3, 9), dtype="int32", temporary=False),
        Base(name="V", shape=(3, 9), dtype="int32", temporary=False),
        Base(name="W", shape=(3, 9), dtype="uint8", temporary=False),
        Base(name="Q", shape=(16,), dtype="int32", temporary=False),
    ),
    steps=(),
    seed=12,
    inexact=False,
)

if __name__ == "__main__":
    print(PROGRAM.listing())
    TIERS["compiled"](PROGRAM)
