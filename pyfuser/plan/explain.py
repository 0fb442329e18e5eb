"""How reports name a file."""

from __future__ import annotations

import os
import sys


def short_path(file: str) -> str:
    """A file's path from the working directory, if that is shorter; In[3] for a notebook's cell."""
    if (cell := _cell(file)) is not None:
        return cell
    try:
        relative = os.path.relpath(file)
    except (OSError, ValueError):  # the directory is gone, or on another drive
        return file
    return relative if len(relative) < len(file) and not file.startswith("<") else file


def _cell(file: str) -> str | None:
    """What IPython calls the cell that it compiled under a name."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython

    shell = get_ipython()
    cells = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return f"In[{cells[file]}]" if file in cells else None
