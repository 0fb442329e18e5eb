"""A program on which two runs disagree; found by `python -m tests.fuzz`.

AttributeError: module 'pyfuser.codegen.cpu.unit' has no attribute '_PIECES'
"""

from tests.fuzz.program import Base, Program
from tests.fuzz.tiers import TIERS

PROGRAM = Program(
    bases=(
        Base(name="A", shape=(10,), dtype="float32", temporary=False),
        Base(name="B", shape=(10,), dtype="complex64", temporary=False),
        Base(name="C", shape=(20,), dtype="bool", temporary=False),
        Base(name="O", shape=(65,), dtype="float64", temporary=False),
        Base(name="P", shape=(65,), dtype="float64", temporary=False),
        Base(name="R", shape=(65,), dtype="float64", temporary=False),
        Base(name="I", shape=(65,), dtype="int32", temporary=False),
        Base(name="S", shape=(47,), dtype="uint16", temporary=False),
        Base(name="U", shape=(47,), dtype="uint8", temporary=False),
        Base(name="V", shape=(47,), dtype="uint8", temporary=False),
        Base(name="W", shape=(47,), dtype="uint32", temporary=False),
        Base(name="Q", shape=(16,), dtype="int32", temporary=False),
    ),
    steps=(),
    seed=14,
    inexact=False,
)

if __name__ == "__main__":
    print(PROGRAM.listing())
    TIERS["compiled"](PROGRAM)
