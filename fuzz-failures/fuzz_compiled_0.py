"""A program on which two runs disagree; found by `python -m tests.fuzz`.

AttributeError: module 'pyfuser.codegen.cpu.unit' has no attribute '_PIECES'
"""

from tests.fuzz.program import Base, Program
from tests.fuzz.tiers import TIERS

PROGRAM = Program(
    bases=(
        Base(name="A", shape=(109,), dtype="float64", temporary=False),
        Base(name="B", shape=(108,), dtype="float64", temporary=False),
        Base(name="C", shape=(109,), dtype="float64", temporary=False),
        Base(name="D", shape=(107,), dtype="float64", temporary=False),
        Base(name="T", shape=(109,), dtype="float64", temporary=False),
        Base(name="U", shape=(109,), dtype="float64", temporary=False),
        Base(name="V", shape=(109,), dtype="float64", temporary=False),
        Base(name="O", shape=(97,), dtype="int64", temporary=False),
        Base(name="P", shape=(97,), dtype="int64", temporary=False),
        Base(name="R", shape=(97,), dtype="int64", temporary=False),
        Base(name="I", shape=(97,), dtype="int32", temporary=False),
        Base(name="S", shape=(3, 23), dtype="float64", temporary=False),
        Base(name="X", shape=(3, 23), dtype="float64", temporary=False),
        Base(name="Y", shape=(3, 23), dtype="float64", temporary=False),
        Base(name="Z", shape=(3, 23), dtype="float64", temporary=False),
        Base(name="E", shape=(4, 3), dtype="float64", temporary=False),
        Base(name="F", shape=(4, 3), dtype="float64", temporary=False),
        Base(name="G", shape=(4, 3), dtype="float64", temporary=False),
        Base(name="L", shape=(6,), dtype="float64", temporary=False),
        Base(name="M", shape=(6,), dtype="float64", temporary=False),
        Base(name="Q", shape=(16,), dtype="int64", temporary=False),
    ),
    steps=(),
    seed=0,
    inexact=False,
)

if __name__ == "__main__":
    print(PROGRAM.listing())
    TIERS["compiled"](PROGRAM)
