"""The options of `pyfuser run`, and what it does with them."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from pyfuser.counters import COUNTERS
from pyfuser.run.flushes import FlushLog
from pyfuser.run.program import ScriptError, run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options; `--help` documents them."""
    parser.add_argument(
        "--report",
        action="store_true",
        help="tell at the end what was fused, and what waited",
    )
    parser.add_argument("--no-fusion", action="store_true", help="run every call at once")
    parser.add_argument("--space", help="default execution space, such as OpenMP or Serial")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write seconds and counts here")
    parser.add_argument("script", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own arguments")


def command(options: argparse.Namespace) -> int:
    """Run the script; what it raises, passes through."""
    return run_script(options, FlushLog() if options.report else None)


def run_script(options: argparse.Namespace, log: FlushLog | None) -> int:
    """Run a script as its options say; a log prints its report on stderr at the end."""
    if options.space is not None:
        try:
            _use_space(options.space)
        except ValueError:
            raise ScriptError(f"--space {options.space}: there is no such space") from None
    if log is not None:
        log.install()
    start = perf_counter()
    try:
        run(options.script, options.arguments, fuse=not options.no_fusion)
    finally:
        seconds = perf_counter() - start
        if options.json is not None:
            options.json.write_text(json.dumps(_facts(seconds)), encoding="utf-8")
        if log is not None:
            sys.stdout.flush()
            print(log.text(), file=sys.stderr)
    return 0


def _use_space(name: str) -> None:
    """Set the default execution space. Raises ValueError if PyKokkos has none of this name."""
    import pykokkos  # the one that the script will find

    pykokkos.set_default_space(pykokkos.ExecutionSpace(name))


def _facts(seconds: float) -> dict[str, Any]:
    return {
        "seconds": seconds,
        "launches": COUNTERS.launches,
        "flushes": COUNTERS.flushes,
        "compilations": COUNTERS.compilations,
    }
