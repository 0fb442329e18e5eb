"""Code for a scan that shares its launch with maps before and after it, tile by tile.

`plan.wavefront` has the law: iterations of two loops that touch one element are the same iteration.
A tile then goes through the maps before the scan, the scan's first pass, its last pass and the maps
after it while it is in cache. The scan's tiles and its order of additions are those that it has
alone (see `cpu.scan`). The slots are a sweep's (see `wavefront.loops`); steps and distances do not
count.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyfuser.codegen.cpu import scan as cpu_scan
from pyfuser.codegen.cpu.context import RESULTS, SLOT, Context, entry_point
from pyfuser.codegen.cpu.wavefront.stage import Stage, checks, indented, sections_of, stages_of
from pyfuser.nest.nodes import SweepNest


def emit(sweep: SweepNest, loops: Sequence[Context]) -> str:
    """The distinct loops, each in a namespace of its own, and the entry point."""
    code, stages = stages_of(sweep, loops)
    assert sweep.scan is not None
    return code + _entry(sweep, stages, sweep.scan)


def _entry(sweep: SweepNest, stages: Sequence[Stage], place: int) -> str:
    spec = sweep.spec
    sections = sections_of(spec)
    stages[0].context.uses("scan", *[] if spec.serial else ["threads"])
    scan, section = stages[place], sections[place]
    node = scan.scan
    assert node is not None
    kind = cpu_scan.accumulator_type(scan.context)
    runs = [
        f"{stage.name}::run(slot + {at}, 0, first, last);"
        for stage, at in zip(stages, sections, strict=True)
    ]
    before, after = runs[:place], runs[place + 1 :]
    last = f"const {kind} sum = {scan.name}::last_pass(slot + {section}, first, last, start);"
    lines = [
        *checks(stages, sections),
        f"pf_chain<{kind}> chain(slot[{section + 1}], slot[{section + 2}], ({kind}*)results);",
        "if (!chain.memory) return -1;",
    ]
    box = "int64_t first, int64_t last"
    rest = [*before, last, *after, "return sum;"]
    alone = [f"chain.alone([&]({box}, {kind} start) {{", *indented(rest), "});"]
    if spec.serial:
        lines += alone
    else:
        first = f"return {scan.name}::first_pass(slot + {section}, first, last);"
        threads = "slot[0] < chain.tiles ? slot[0] : chain.tiles" if sweep.shared else "1"
        lines.append(f"const int64_t threads = {threads};")
        if node.single:
            lines += ["if (threads == 1) {", *indented([*alone, "return 0;"]), "}"]
        lines += [
            "#pragma omp parallel if (threads > 1) num_threads(threads)",
            f"chain.run({cpu_scan.at_once(node)}, [&]({box}) {{",
            *indented(before),
            f"}}, [&]({box}) {{",
            *indented([first]),
            f"}}, [&]({box}, {kind} start) {{",
            *indented([last, *after, "return sum;"]),
            "});",
        ]
    contexts = [stage.context for stage in stages]
    return entry_point(contexts, [*SLOT, *RESULTS], [*lines, "return 0;"])
