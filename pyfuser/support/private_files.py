"""Files that only we can have written."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_own(path: Path) -> bytes | None:
    """What is in a regular file that is ours and that only we can write; None if it is not one."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
            return None
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return None
        with open(file, "rb", closefd=False) as stream:
            return stream.read()
    except OSError:
        return None
    finally:
        os.close(file)
