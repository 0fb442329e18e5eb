"""The ways to judge a program."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.compiled import check_compiled
from tests.fuzz.harness import Outcome, check_interpreted
from tests.fuzz.inexact import check_inexact
from tests.fuzz.on_device import check_on_device
from tests.fuzz.program import Program

TIERS: dict[str, Callable[[Program], Outcome]] = {
    "interpret": check_interpreted,
    "compiled": check_compiled,
    "inexact": check_inexact,
    "device": check_on_device,
}
