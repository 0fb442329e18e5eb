"""The options of `pyfuser run`, and what it does with them."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from pyfuser.options import check_writable, use_space
from pyfuser.run.flushes import FlushLog
from pyfuser.run.program import run, run_module
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import UsageError


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
        "-m", dest="module", metavar="module", help="run a module, as `python -m module` does"
    )
    parser.add_argument("script", nargs="?", help="a Python file")
    parser.add_argument("arguments", nargs="*", help="the program's own arguments")


def divided(given: list[str]) -> tuple[list[str], list[str]]:
    """Our options, and what comes from the script's name or from -m on, as Python's own are."""
    at = 0
    while at < len(given) and given[at].startswith("-"):
        if given[at] in ("-", "--") or given[at].startswith("-m"):
            break
        at += 2 if given[at] in ("--space", "--json") else 1
    rest = given[at:]
    return given[:at], rest[1:] if rest[:1] == ["--"] else rest


def take(options: argparse.Namespace, rest: list[str]) -> None:
    """Set `script` or `module`, and `arguments`, from the second part of `divided`."""
    if not rest:
        return
    if rest[0] == "-m":
        options.module, options.arguments = "".join(rest[1:2]), rest[2:]
    elif rest[0].startswith("-m"):
        options.module, options.arguments = rest[0][2:], rest[1:]
    else:
        options.script, options.arguments = rest[0], rest[1:]


def command(options: argparse.Namespace) -> int:
    """Run the script; what it raises, passes through."""
    if options.module is None and options.script is None:
        raise UsageError("run: give a script, or -m and a module: pyfuser run script.py arguments")
    if options.module == "":
        raise UsageError("run -m: give the name of a module, such as package.module")
    _note_late_options(options)
    return run_script(options, FlushLog() if options.report else None)


_OPTIONS = ("--report", "--no-fusion", "--space", "--json")


def _note_late_options(options: argparse.Namespace) -> None:
    """Say so if the script is given an option of ours that its text does not mention."""
    for argument in options.arguments if options.module is None else ():
        name = argument.partition("=")[0]
        if name in _OPTIONS and name.encode() not in _text(options.script):
            print(
                f"pyfuser: {name} stands behind {options.script}, so the script gets it; options "
                f"of pyfuser come before: pyfuser run {name} {options.script}",
                file=sys.stderr,
            )


def _text(script: str) -> bytes:
    try:
        return Path(script).read_bytes()
    except OSError:
        return b""


def run_script(options: argparse.Namespace, log: FlushLog | None) -> int:
    """Run a script as its options say; a log prints its report on stderr at the end."""
    use_space(options.space)
    check_writable("--json", options.json)
    if log is not None:
        log.install()
    start = perf_counter()
    try:
        if options.module is not None:
            run_module(options.module, options.arguments, fuse=not options.no_fusion)
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
