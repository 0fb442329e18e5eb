"""One contestant in a process of its own, as thread pools of several libraries do not mix.

    python -m experiments.peers.serve CONTESTANT THREADS [SPACE]

answers ``device`` (a GPU's name), ``load NAME SIZE`` (seconds of building), ``run`` (seconds),
``outputs FILE``.
"""

from __future__ import annotations

import gc
import os
import sys
from time import perf_counter

import numpy as np

from pyfuser.compare.serve import converse, explained, private_stdout, use_space


class Server:
    """Holds the one program that is being measured."""

    def __init__(self, contestant: str, space: str | None) -> None:
        from experiments.peers import contestants

        self._make = contestants.make
        self._contestant, self._space = contestant, space
        self._program: contestants.Program | None = None

    def answer(self, command: str, argument: str) -> object:
        """What the asking process gets to know."""
        if command == "load":
            return self._load(*argument.split())
        if command == "device":
            return device_name(self._space)
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
        self._program = self._make(self._contestant, name, int(size), self._space)
        return self._program.build_seconds


def device_name(space: str | None) -> str | None:
    """The GPU of an execution space; None on the host."""
    if space is None:
        return None
    use_space(space)
    from pyfuser.engine.gpu.device import current

    return f"{current().name}, {current().library.description}"


def main() -> None:
    """Serve until stdin ends."""
    answers = private_stdout()
    contestant, threads, *space = sys.argv[1:]
    if hasattr(os, "sched_setaffinity"):  # for libraries that take what cores they find
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(threads)])
    server = None

    def answer(command: str, argument: str) -> object:
        nonlocal server
        server = server or Server(contestant, space[0] if space else None)
        return server.answer(command, argument)

    try:
        converse(answers, answer)
    except Exception as error:
        answers.write(explained(error))
        answers.flush()


if __name__ == "__main__":
    main()
