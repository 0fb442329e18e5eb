"""A program on which two runs disagree; found by `python -m tests.fuzz`.

AttributeError: module 'pyfuser.codegen.cpu.unit' has no attribute '_PIECES'
"""

from tests.fuzz.program import Base, Program
from tests.fuzz.tiers import TIERS

PROGRAM = Program(
    bases=(
        Base(name="A", shape=(12,), dtype="float32", temporary=False),
        Base(name="B", shape=(10,), dtype="int64", temporary=False),
        Base(name="C", shape=(24,), dtype="float32", temporary=False),
        Base(name="D", shape=(24,), dtype="bool", temporary=False),
        Base(name="H", shape=(14,), dtype="float64", temporary=False),
        Base(name="J", shape=(14,), dtype="float64", temporary=False),
        Base(name="K", shape=(14,), dtype="float64", temporary=False),
        Base(name="N", shape=(14,), dtype="float64", temporary=False),
        Base(name="E", shape=(4, 4), dtype="float64", temporary=False),
        Base(name="F", shape=(4, 4), dtype="float64", temporary=False),
        Base(name="G", shape=(4, 4), dtype="float64", temporary=False),
        Base(name="L", shape=(9,), dtype="float64", temporary=False),
        Base(name="M", shape=(9,), dtype="float64", temporary=False),
        Base(name="Q", shape=(16,), dtype="int64", temporary=False),
    ),
    steps=(),
    seed=18,
    inexact=False,
)

if __name__ == "__main__":
    print(PROGRAM.listing())
    TIERS["compiled"](PROGRAM)
