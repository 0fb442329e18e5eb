"""Which versions of PyKokkos the hooks are known to fit.

PyKokkos' version number stays the same for years, so versions are told apart by the text of the
files that the hooks rely on.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

#: Files that define what is hooked, below the package's folder.
FILES = (
    "interface/__init__.py",
    "interface/parallel_dispatch.py",
    "interface/views.py",
    "interface/execution_policy.py",
    "interface/execution_space.py",
    "interface/decorators.py",
    "core/runtime.py",
    "kokkos_manager/__init__.py",
)

#: What each version we have run the tests with is called, by the digest of these files.
TESTED: dict[str, str] = {
    "8c7881c0a81ceda4": "PyKokkos 0.1 of 20 November 2025 (b42c805)",
    "b0c4ab5e9991d7c4": "of 19 November 2025 (9720e2f)",
    "7e336b6b5d7942e0": "of 17 November 2025 (7b8f960)",
}


def digest(package: Path) -> str:
    """A digest of the files in the package's folder; a missing file counts as an empty one."""
    total = hashlib.sha256()
    for name in FILES:
        file = package / name
        text = file.read_bytes() if file.is_file() else b""
        total.update(hashlib.sha256(text.replace(b"\r\n", b"\n")).digest())
    return total.hexdigest()[:16]


def refusal(package: Path) -> str | None:
    """Why the PyKokkos in this folder is not hooked; None if it is one that we know."""
    found = digest(package)
    if found in TESTED:
        return None
    return (
        f"pyfuser does not know the PyKokkos in {package} (digest {found}), so nothing is fused "
        f"and PyKokkos runs as without pyfuser. Tested with: {', '.join(TESTED.values())}. "
        "PYFUSER_FRONTEND=embedded runs programs with pyfuser's own PyKokkos instead"
    )
