"""Time one program fused, unfused and, where it is asked for, by a challenger beside them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import field
from types import ModuleType
from typing import Any

import pyfuser
from pyfuser.compare import serve
from pyfuser.compare.peer import Peer, PeerError, Served, Without
from pyfuser.compare.programs import Program
from pyfuser.compare.summary import (
    Difference,
    Interval,
    difference,
    median_interval,
    ratios,
    speedup,
)
from pyfuser.support.counters import COUNTERS
from pyfuser.support.records import dataclass
from pyfuser.trace import pool

WARM_UPS = 2  # the first run compiles, the second meets what the first left behind


@dataclass(slots=True)
class Variant:
    """One way to run a program. Times are in seconds; `first` includes all compilation."""

    first: float = 0.0
    times: list[float] = field(default_factory=list)
    launches: int = 0
    compilations: int = 0
    compile_seconds: float = 0.0


@dataclass(slots=True)
class PeerResult:
    """What the challenger made of the program; `error` says why there are no times."""

    variant: Variant = field(default_factory=Variant)
    difference: Difference | None = None
    check: str | None = None
    error: str | None = None


@dataclass(slots=True)
class Result:
    """A program's comparison. `check` is what its own check found wrong (None: nothing)."""

    name: str
    size: int
    unfused: Variant
    fused: Variant
    difference: Difference
    checked: bool
    check: str | None
    peer: PeerResult | None

    @property
    def speedup(self) -> float:
        return speedup(self.unfused.times, self.fused.times)

    @property
    def interval(self) -> Interval:
        """Of the speedup, from the pairs' ratios."""
        return median_interval(ratios(self.unfused.times, self.fused.times))

    @property
    def correct(self) -> bool:
        return self.difference.acceptable and self.check is None


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure: see `pyfuser compare --help`."""

    size: str = "default"
    repeat: int = 9
    space: str | None = None
    check: bool = True
    check_size: str | None = None  # None: the state that was measured
    peer_python: str | None = None
    without: str = ""  # names of passes, with commas between them


class _Side:
    """A program's state and the mode, fused or unfused, that all its calls are made in."""

    def __init__(
        self, module: ModuleType, size: int, mode: Callable[[], AbstractContextManager[object]]
    ) -> None:
        self.module = module
        self.mode = mode
        self.runs = 0
        self.variant = Variant()
        with mode():
            self.state: Any = module.setup(size)
            pyfuser.sync()

    def run(self) -> float:
        """Seconds of one run; notes what it launched and compiled."""
        launches, compilations = COUNTERS.launches, COUNTERS.compilations
        compile_seconds = COUNTERS.compile_seconds
        with self.mode():
            seconds = serve.timed_run(self.module, self.state, pyfuser.sync)
        self.variant.launches = COUNTERS.launches - launches
        self.variant.compilations += COUNTERS.compilations - compilations
        self.variant.compile_seconds += COUNTERS.compile_seconds - compile_seconds
        self.runs += 1
        return seconds

    def outputs(self) -> dict[str, Any]:
        with self.mode():
            return dict(self.module.outputs(self.state))


def steps(options: Options) -> int:
    """How often `measure` calls `advance` for a program."""
    return WARM_UPS + options.repeat


def measure(program: Program, options: Options, advance: Callable[[str], None]) -> Result:
    """Compare one program; `advance(what)` is called after each round of runs.

    Raises whatever the program raises.
    """
    module, size = program.module, program.size
    pool.clear()  # what the program before has left may be a quarter of the memory
    with ExitStack() as cleanup:
        peer = _Challenger(program, options)
        cleanup.callback(peer.close)
        sides = _Side(module, size, pyfuser.unfused), _Side(module, size, pyfuser.fusing)
        for number in range(WARM_UPS):
            for runner in (*sides, peer):
                seconds = runner.run()
                if number == 0:
                    runner.variant.first = seconds
            advance("warm-up")
        for number in range(options.repeat):
            for runner in (*sides, peer):
                runner.variant.times.append(runner.run())
            advance(f"run {number + 1}")
        unfused, fused = sides
        wanted = unfused.outputs()
        return Result(
            name=program.name,
            size=size,
            unfused=unfused.variant,
            fused=fused.variant,
            difference=difference(wanted, fused.outputs()),
            checked=options.check,
            check=_check(fused, program) if options.check else None,
            peer=peer.result(wanted, options.check),
        )


def _check(measured: _Side, program: Program) -> str | None:
    """What the program's own check finds wrong with fused results."""
    side, size = measured, program.size
    if program.check_size is not None:
        size = program.check_size
        side = _Side(measured.module, size, measured.mode)
        for _ in range(WARM_UPS):
            side.run()
    with side.mode():
        return serve.failed_check(side.module, side.state, size, side.runs)


class _Challenger:
    """An installed PyKokkos, or PyFuser without some passes, if one of them is asked for.

    Once it has failed it stays silent and keeps the reason.
    """

    def __init__(self, program: Program, options: Options) -> None:
        self.variant = Variant()
        self._peer: Served | None = None
        self._error: str | None = None
        self._wanted = bool(options.without) or options.peer_python is not None
        given = program.path, program.size, options.space
        try:
            if options.without:
                self._peer = Without(options.without, *given)
            elif options.peer_python is None:
                return
            elif not getattr(program.module, "UPSTREAM", True):
                self._error = "not in its language"
            else:
                self._peer = Peer(options.peer_python, *given)
        except PeerError as error:
            self._error = str(error)

    def run(self) -> float:
        if self._peer is None or self._error is not None:
            return 0.0
        try:
            return self._peer.run()
        except PeerError as error:
            self._error = str(error)
            return 0.0

    def result(self, wanted: dict[str, Any], check: bool) -> PeerResult | None:
        """None if nothing was asked for."""
        if not self._wanted:
            return None
        if self._peer is None or self._error is not None:
            return PeerResult(error=self._error)
        try:
            return PeerResult(
                variant=self.variant,
                difference=difference(wanted, self._peer.outputs()),
                check=self._peer.failed_check() if check else None,
            )
        except PeerError as error:
            return PeerResult(error=str(error))

    def close(self) -> None:
        if self._peer is not None:
            self._peer.close()
