"""How reports name a file."""

from __future__ import annotations

import os


def short_path(file: str) -> str:
    """A file's path from the working directory, if that is shorter than the whole path."""
    try:
        relative = os.path.relpath(file)
    except (OSError, ValueError):  # the directory is gone, or on another drive
        return file
    return relative if len(relative) < len(file) and not file.startswith("<") else file
