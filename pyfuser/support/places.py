"""How reports and errors name a file."""

from __future__ import annotations

import os
import sys


def short_path(file: str) -> str:
    """A file's path from the working directory, if that is shorter; In[3] for a notebook's cell."""
    named = name(file)
    if named != file:
        return named
    try:
        relative = os.path.relpath(file)
    except (OSError, ValueError):  # the directory is gone, or on another drive
        return file
    return relative if len(relative) < len(file) and not file.startswith("<") else file


def name(file: str) -> str:
    """A file's own name; In[3] for a notebook's cell, which IPython compiles under another."""
    if "IPython" not in sys.modules:
        return file
    from IPython import get_ipython

    shell = get_ipython()
    cells = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return f"In[{cells[file]}]" if file in cells else file
