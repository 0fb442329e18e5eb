"""A program on which two runs disagree; found by `python -m tests.fuzz`.

AttributeError: module 'pyfuser.codegen.cpu.unit' has no attribute '_PIECES'
"""

from tests.fuzz.program import Base, Program
from tests.fuzz.tiers import TIERS

PROGRAM = Program(
    bases=(
        Base(name="A", shape=(5, 5), dtype="uint16", temporary=False),
        Base(name="B", shape=(5, 5), dtype="uint8", temporary=False),
        Base(name="O", shape=(97,), dtype="int64", temporary=False),
        Base(name="P", shape=(97,), dtype="int64", temporary=False),
        Base(name="R", shape=(97,), dtype="int64", temporary=False),
        Base(name="I", shape=(97,), dtype="int32", temporary=False),
        Base(name="S", shape=(10,), dtype="uint64", temporary=False),
        Base(name="U", shape=(10,), dtype="uint8", temporary=False),
        Base(name="V", shape=(10,), dtype="uint32", temporary=False),
        Base(name="W", shape=(10,), dtype="int8", temporary=False),
        Base(name="Q", shape=(16,), dtype="int64", temporary=False),
    ),
    steps=(),
    seed=7,
    inexact=False,
)

if __name__ == "__main__":
    print(PROGRAM.listing())
    TIERS["compiled"](PROGRAM)
