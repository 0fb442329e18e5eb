"""The process's session: what it has recorded, and all that it keeps of what it ran.

Tables of the runtime are attributes of `SESSION`; those of other folders belong to their modules.
All of them are in `support.caches.CACHES` by name, and `Session.clear` forgets them all:

| what | key | value | at most | what goes |
| --- | --- | --- | --- | --- |
| `programs` | a trace's shape | plan, kernels, launches | 512 | least recent |
| `replays` | a trace's words (`trace.key`) | programs by what is known of memory | 512 | first in |
| `families` | a trace without sizes | a program, how many had it | 256 | least recent |
| `kernels` | a group's shape | fused kernel, all passes run | 2048 | least recent |
| `launchables` | the group shapes of a launch | compiled code | 2048 | least recent |
| `flushes` | - (the latest last) | what `explain` needs | 64 | first in |
| `unrecorded` | a call's name, code and line | why it was not recorded | 64 | first in |
| `apart` | a call's name and code | a place where it ran unfused | 64 | first in |
| `budget` | a sequence of workunits | what its plan or kernels cost | 256 | first in |
| `budget` | id() of a workunit | how many of its calls ran with no other | 256 | first in |
| `budget` | a sequence of workunits | traces that did not come back | 256 | first in |
| `runtime.looked` _SEEN | a workunit | how many shapes were looked at | 1024 | first in |
| `runtime.eager` READY, CHECKED | id() of a workunit | kernels by a cheap key | 1024 | first in |
| `engine.native` KERNELS | what identifies code | the loaded library | 4096 | least recent |
| `engine.gpu.launchable` KERNELS | what identifies code | the loaded module | 2048 | first in |
| `plan.plan_cache` ALIKE | a long trace, sizes rounded | its plan | 256 | least recent |
| `plan.plan_cache` FAMILIES | a trace without sizes | proved plans | 256 | least recent |
| `transform.widen` _PROOFS | a workunit | its widened code by ranges | 1024 | first in |
| `lower.source` _SOURCES | a code object | its syntax tree | - | with the code |
| `lower.source` _FILES | a file | its definitions | 64 | first in |
| `lower.signature` _SIGNATURES | a code object | a workunit's signature | - | with the code |
| `lower.lambdas` _MADE | a lambda's code object | a function | - | with the code |
| `frontends.embedded.methods` _LAMBDAS | a lambda's code | lowered code | - | with the code |
| `frontends.embedded.spaces` KNOWN_POLICIES | a policy | its space | 4096 | first in |
| `frontends.embedded.usual_views` _KNOWN | a View's shape | what Views share | 4096 | first in |
| `frontends.embedded.careful` _SEEN | a workunit, shapes | without mistakes | 4096 | first in |
| `run.endings` _WRITTEN_IN_PYTHON | id() of a class | whether it has no C | 1024 | first in |
| `runtime.first_tier` SEEN | a trace's shape, or its family | bytes it moved | 1024 | first in |
| `runtime.first_tier` SITES | an instruction and a shape | bytes it moved | 4096 | first in |
| `frontends.numpy.resolution` _KNOWN | an operation, dtypes | its loop's types | 4096 | first in |
| `frontends.numpy.selected` _ASKED | an instruction | times it was gathered | 4096 | first in |
| `frontends.numpy.record` _ENTRIES | an operation, operands | its call | 4096 | first in |
| `frontends.numpy.known` _Plans | an operation, operands | its call, in C | 1024 | all |
| `frontends.numpy.layout` _KNOWN | shapes, strides | how kernels walk them | 4096 | first in |
| `frontends.numpy.workunits` _RECIPES | an operation, types, layout | its call | 4096 | first in |
| `frontends.numpy.as_program` _LINES | a line | code that calls NumPy | 1024 | first in |
| functions decorated with `cached` | their arguments | their result | as they say | least recent |

Lowered workunits belong to the function (`__pyfuser__`) and go with it. On disk stay compiled
kernels (`engine.cache`), plans and kernels before they are compiled (`runtime.stored`), and choices
between plans (`runtime.autotune`).

What is no cache, as it cannot be made again, is a module's own:

- `support.counters`, what was said already in `support.progress` and `frontends.upstream.failures`,
  and `support.caches`, the list itself; `tuning.thresholds`: the numbers in force;
- `frontends.modes`: the switches and blocks; `frontends.embedded.spaces`: the default space, which
  the extension reads in HOSTS, and which GPUs were found; `frontends.embedded.careful`: what ran
  at once;
- `frontends.numpy.fallbacks`: what NumPy computed; `frontends.numpy.floating`: which lines warned;
  `frontends.numpy.floating`: the call whose errors are told; `frontends.numpy.wrap`: the class of
  arrays; `frontends.numpy.memory` and `frontends.numpy.selected`: what masks select, how many
  of these there are, and which; `frontends.numpy.switches`: what is recorded;
  `frontends.numpy.layout`: the lengths of rows that were rolled;
  `frontends.numpy.spaces`: and where it runs;
- `trace.pool`: memory kept for new Views; `trace.images` and `engine.gpu.device`: what is on GPUs,
  and how the extension launches there (`hot/device.c`);
  `frontends.upstream.lifetime`, `frontends.upstream.views`: what PyKokkos holds;
- `ir.visit`: the fields of each class of nodes;
- `engine.launchable`: the team of threads; `engine.native`, `engine.ahead`: compilations under way;
  `engine.store.store`: how much was written, and whether that can be done;
- `lower.source`, `run.watched` and `run.guards`: code that was rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import CodeType
from typing import TYPE_CHECKING, Any

from pyfuser.runtime import checked
from pyfuser.runtime.budget import Budget
from pyfuser.runtime.launch import LaunchKey, Ready
from pyfuser.support.caches import Latest, Table, clear_caches
from pyfuser.support.lazy import lazily
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.call import Call
from pyfuser.trace.gate import Ran
from pyfuser.trace.shape import TraceShape
from pyfuser.trace.tracer import Tracer

if TYPE_CHECKING:
    from pyfuser.runtime import eager
    from pyfuser.runtime.families import Family
    from pyfuser.runtime.program import Flush, Program
    from pyfuser.runtime.replay import Replay
    from pyfuser.transform.group import GroupShape
    from pyfuser.transform.kernel import Kernel
else:
    eager = lazily("pyfuser.runtime.eager")


def run_alone(call: Call, checked: bool = False, ran: Ran | None = None) -> None:
    """What `eager.run` does."""
    eager.run(call, checked, ran)


class Session:
    """One a process; used under its tracer's lock.

    run: launches one call now and alone. took: seconds of the latest flush that looked for its
    program, from then on.
    """

    def __init__(self) -> None:
        self.tracer = Tracer()
        self.budget = Budget(self._taken)
        self.took = 0.0
        self.run: Callable[[Call], None] = checked.run if SETTINGS.check else run_alone
        self.programs: Table[TraceShape, Program] = Table("programs", 512, tuned=True)
        self.replays: Table[tuple[Any, ...], dict[Any, Replay]] = Table("replays", 512)
        self.families: Table[Hashable, Family] = Table("programs for many sizes", 256, tuned=True)
        self.kernels: Table[GroupShape, Kernel] = Table("kernels of groups", 2048, tuned=True)
        self.launchables: Table[LaunchKey, Ready] = Table("compiled launches", 2048, tuned=True)
        self.flushes: Latest[Flush] = Latest("flushes", 64)
        self.unrecorded: Table[tuple[str, CodeType, int], str] = Table("calls not recorded", 64)
        self.apart: Table[tuple[str, CodeType], int] = Table("calls that ran unfused", 64)

    def _taken(self) -> float:
        """Seconds that all programs have taken to run, modelled."""
        programs = [program for program in self.programs.values() if program.launches]
        return sum([p.seconds * p.launches[0].timing.runs for p in programs])

    def clear(self) -> None:
        """Forget everything but what is recorded and has not run: as in a new process."""
        with self.tracer.lock:
            clear_caches()
            self.tracer.postponed, self.tracer.postponing = 0, None
            self.budget.forget()


SESSION = Session()
TRACER = SESSION.tracer
