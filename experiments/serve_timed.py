"""Runs a program of kernels/ on request, for `ablation`: `serve_timed.py PROGRAM SIZE`.

Each line of stdin is answered by the processor seconds of one run, a line each.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import process_time

import pyfuser

pyfuser.enable()

from pyfuser.compare import serve  # noqa: E402  the program imports pykokkos


def main() -> None:
    answers = serve.private_stdout()
    module = serve.load(Path(sys.argv[1]))
    state = module.setup(serve.size_of(module, sys.argv[2]))
    pyfuser.sync()
    print("ready", file=answers)
    for _ in sys.stdin:
        start = process_time()
        module.run(state)
        pyfuser.sync()
        print(process_time() - start, file=answers)


if __name__ == "__main__":
    main()
