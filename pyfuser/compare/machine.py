"""What a measurement ran on: processor, compiler and versions."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version

from pyfuser.support.settings import SETTINGS
from pyfuser.tuning.host import processor

PACKAGES = ("pyfuser", "numpy", "islpy", "pykokkos", "cupy")


def compiler_version() -> str:
    """The first line of the C++ compiler's --version, or "not found"."""
    try:
        done = subprocess.run(
            [*SETTINGS.compiler.split(), "--version"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "not found"
    return done.stdout.partition("\n")[0]


def package_versions() -> dict[str, str]:
    """The installed versions of the packages that matter."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def describe() -> dict[str, str | int]:
    """Processor, threads, system and versions, for a report."""
    return {
        "processor": processor(),
        "threads": SETTINGS.threads,
        "system": platform.platform(),
        "python": platform.python_version(),
        "compiler": compiler_version(),
        **package_versions(),
    }
