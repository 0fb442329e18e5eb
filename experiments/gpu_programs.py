"""Runs every program of kernels/ on a GPU at its small size, fused and unfused, and checks it."""

from __future__ import annotations

import sys
from pathlib import Path

import pyfuser
from pyfuser.compare import serve
from pyfuser.engine.gpu.library import loaded

PROGRAMS = sorted((Path(__file__).resolve().parents[1] / "kernels").glob("*.py"))
RUNS = 2


def main(space: str) -> int:
    """1 if a program's own check finds something wrong."""
    serve.use_space(space)
    loaded().cuda.set_allocator(None)  # in a pool, what lies behind an array is valid memory, too
    wrong = 0
    for path in PROGRAMS:
        module = serve.load(path)
        size = module.SIZES["small"]
        for mode in (pyfuser.unfused, pyfuser.fusing):
            with mode():
                state = module.setup(size)
                for _ in range(RUNS):
                    module.run(state)
                    pyfuser.sync()
                failed = serve.failed_check(module, state, size, RUNS)
            print(f"{path.stem} {mode.__name__}: {failed or 'right'}", flush=True)
            wrong |= failed is not None
    return wrong


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
