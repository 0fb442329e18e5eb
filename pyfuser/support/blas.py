"""Imports NumPy so that the threads of its matrix products sleep soon after one.

OpenBLAS, which NumPy's wheels have, reads when it is loaded for how long a thread waits for the
next product before it sleeps. Its own 2**26 ticks are some 25 ms, in which kernels find no core: a
product between them made their launches take twice as long.

So this runs before anything else imports NumPy, and changes nothing if something did.
"""

from __future__ import annotations

import os
import sys

NAME = "OPENBLAS_THREAD_TIMEOUT"

TICKS = 19
"""Of two, the power of ticks: 0.2 ms, as libgomp's threads wait (`tuning.thresholds`: spins).

EPYC, two cores: a Fourier transform of products and kernels takes 65 ms, not 99. Products back to
back, or with a few operations between them, find threads awake as ever; with 10, those of 128 by
128 numbers take 1.4 times as long."""


def load() -> None:
    """Import NumPy. The environment is as before: what the program starts reads its own."""
    if NAME in os.environ or "numpy" in sys.modules:
        return
    os.environ[NAME] = str(TICKS)
    try:
        import numpy  # noqa: F401
    finally:
        os.environ.pop(NAME, None)


load()
