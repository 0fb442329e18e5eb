"""A program on which two runs disagree; found by `python -m tests.fuzz`.

AttributeError: module 'pyfuser.codegen.cpu.unit' has no attribute '_PIECES'
"""

from tests.fuzz.program import Base, Program
from tests.fuzz.tiers import TIERS

PROGRAM = Program(
    bases=(
        Base(name="A", shape=(12,), dtype="uint64", temporary=False),
        Base(name="B", shape=(12,), dtype="complex128", temporary=False),
        Base(name="O", shape=(97,), dtype="float64", temporary=False),
        Base(name="P", shape=(97,), dtype="float64", temporary=False),
        Base(name="R", shape=(97,), dtype="float64", temporary=False),
        Base(name="I", shape=(97,), dtype="int32", temporary=False),
        Base(name="S", shape=(2, 5), dtype="float64", temporary=False),
        Base(name="X", shape=(2, 5), dtype="float64", temporary=False),
        Base(name="Y", shape=(2, 5), dtype="float64", temporary=False),
        Base(name="Z", shape=(2, 5), dtype="float64", temporary=False),
        Base(name="Q", shape=(16,), dtype="int64", temporary=False),
    ),
    steps=(),
    seed=3,
    inexact=False,
)

if __name__ == "__main__":
    print(PROGRAM.listing())
    TIERS["compiled"](PROGRAM)
