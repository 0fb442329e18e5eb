"""The options of `pyfuser run`, and what it does with them."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from pyfuser.counters import COUNTERS
from pyfuser.errors import UsageError
from pyfuser.options import check_writable, use_space
from pyfuser.run.flushes import FlushLog
from pyfuser.run.program import run, run_module


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
    parser.add_argument(
        "-m",
        dest="module",
        nargs=argparse.REMAINDER,
        metavar="MODULE",
        help="run a module in place of a script, as `python -m` does; the rest are its arguments",
    )
    parser.add_argument("script", nargs="?", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own arguments")


def command(options: argparse.Namespace) -> int:
    """Run the script; what it raises, passes through."""
    if options.module is None and options.script is None:
        raise UsageError("run: give a script, or -m and a module: pyfuser run script.py arguments")
    if options.module is not None and not options.module:
        raise UsageError("run -m: give the name of a module, such as package.module")
    return run_script(options, FlushLog() if options.report else None)


def run_script(options: argparse.Namespace, log: FlushLog | None) -> int:
    """Run a script as its options say; a log prints its report on stderr at the end."""
    use_space(options.space)
    check_writable("--json", options.json)
    if log is not None:
        log.install()
    start = perf_counter()
    try:
        if options.module is not None:
            run_module(options.module[0], options.module[1:], fuse=not options.no_fusion)
        else:
            run(options.script, options.arguments, fuse=not options.no_fusion)
    finally:
        seconds = perf_counter() - start
        if options.json is not None:
            options.json.write_text(json.dumps(_facts(seconds)), encoding="utf-8")
        if log is not None:
            sys.stdout.flush()
            print(log.text(), file=sys.stderr)
    return 0


def _facts(seconds: float) -> dict[str, Any]:
    return {
        "seconds": seconds,
        "launches": COUNTERS.launches,
        "flushes": COUNTERS.flushes,
        "compilations": COUNTERS.compilations,
    }
