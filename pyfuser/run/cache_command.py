"""`pyfuser cache`: what is kept on disk, and what it takes; to empty it, and to fill it."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys

from pyfuser.engine.cache import private_directory
from pyfuser.engine.store.trim import KINDS, files
from pyfuser.run import command as running
from pyfuser.support import units
from pyfuser.support.counters import COUNTERS
from pyfuser.support.errors import UsageError
from pyfuser.support.settings import SETTINGS

ACTIONS = ("info", "clear", "warm")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments; `--help` documents them."""
    parser.add_argument(
        "action",
        choices=ACTIONS,
        metavar="ACTION",
        help="info: what is kept; clear: remove it; warm: run a script, to keep what it needs",
    )
    parser.set_defaults(module=None, script=None, arguments=[])


def command(options: argparse.Namespace) -> int:
    """Show what is kept, or remove it."""
    return info() if options.action == "info" else clear()


def info() -> int:
    """Print where it is, and how much."""
    print(f"{'folder':<13} {SETTINGS.cache_dir}")
    total = 0
    for kind in KINDS:
        sizes = [each.size for each in files(SETTINGS.cache_dir, kind)]
        total += sum(sizes)
        print(f"{kind:<13} {units.count(len(sizes), 'file')}, {units.size(sum(sizes))}")
    print(f"{'limit':<13} {units.size(SETTINGS.cache_size << 20)} (PYFUSER_CACHE_SIZE)")
    return 0


def clear() -> int:
    """Remove kernels and plans, of which running processes keep what they have loaded.

    Calibrations and measured choices stay. Raises CacheError for a folder that others can write.
    """
    gone = 0
    for kind in KINDS:
        if (SETTINGS.cache_dir / kind).is_dir():
            private_directory(SETTINGS.cache_dir / kind)
            for each in files(SETTINGS.cache_dir, kind):
                with contextlib.suppress(OSError):
                    os.unlink(each.path)
                    gone += 1
    print(f"removed {units.count(gone, 'file')} from {SETTINGS.cache_dir}")
    return 0


def warm(options: argparse.Namespace) -> int:
    """Run a script, fused; then say what was compiled, and what was there. Errors are its own."""
    if options.module is None and options.script is None:
        raise UsageError("cache warm: give a script: pyfuser cache warm script.py arguments")
    options.no_fusion, options.space, options.json = False, None, None
    status = running.run_script(options, None)
    compiled = units.count(COUNTERS.compilations, "kernel")
    print(f"pyfuser: compiled {compiled}; {COUNTERS.cache_hits} were there", file=sys.stderr)
    return status
