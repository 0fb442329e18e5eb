"""One contestant in a process of its own, as thread pools of several libraries do not mix.

    python -m experiments.peers.serve CONTESTANT THREADS

answers ``load NAME SIZE`` (seconds of building), ``run`` (seconds), ``outputs FILE``.
"""

from __future__ import annotations

import gc
import os
import sys
from time import perf_counter

import numpy as np

from pyfuser.compare.serve import converse, explained, private_stdout


class Server:
    """Holds the one program that is being measured."""

    def __init__(self, contestant: str) -> None:
        from experiments.peers import contestants

        self._make = contestants.make
        self._contestant = contestant
        self._program: contestants.Expert | contestants.Ours | contestants.Copy | None = None

    def answer(self, command: str, argument: str) -> object:
        """What the asking process gets to know."""
        if command == "load":
            return self._load(*argument.split())
        assert self._program is not None
        if command == "run":
            start = perf_counter()
            self._program.run()
            return perf_counter() - start
        assert command == "outputs", command
        np.savez(argument, **self._program.outputs())
        return None

    def _load(self, name: str, size: str) -> float:
        self._program = None  # the last program's arrays go first
        gc.collect()
        self._program = self._make(self._contestant, name, int(size))
        return self._program.build_seconds


def main() -> None:
    """Serve until stdin ends."""
    answers = private_stdout()
    contestant, threads = sys.argv[1:]
    if hasattr(os, "sched_setaffinity"):  # for libraries that take what cores they find
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(threads)])
    server = None

    def answer(command: str, argument: str) -> object:
        nonlocal server
        server = server or Server(contestant)
        return server.answer(command, argument)

    try:
        converse(answers, answer)
    except Exception as error:
        answers.write(explained(error))
        answers.flush()


if __name__ == "__main__":
    main()
