"""The mutants: ways to break the legality of fusion, each a substitution that fits exactly once.

`tests` are those known to kill a mutant, the fastest first.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """In `pyfuser/<file>`, the text `old` becomes `new`."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = ()


_DEPENDENCES = (
    Mutant(
        "no anti dependences",
        "analysis/dependences.py",
        "return None if b.mode is Mode.READ else Kind.ANTI",
        "return None",
    ),
    Mutant(
        "no output dependences",
        "analysis/dependences.py",
        "return Kind.FLOW if b.mode is Mode.REDUCE else Kind.OUTPUT",
        "return Kind.FLOW if b.mode is Mode.REDUCE else None",
    ),
    Mutant(
        "no flow dependences",
        "analysis/dependences.py",
        "if b.mode is Mode.READ:\n        return Kind.FLOW",
        "if b.mode is Mode.READ:\n        return None",
    ),
    Mutant(
        "atomics of any operators commute",
        "analysis/dependences.py",
        "return _COMMUTING[op] == _COMMUTING.get(other_op) and all(",
        "return all(",
    ),
    Mutant(
        "atomics of any types commute",
        "analysis/dependences.py",
        "if region.dtype is not other.dtype or op not in _COMMUTING:",
        "if op not in _COMMUTING:",
    ),
    Mutant(
        "the first conflict of two arguments hides worse ones",
        "analysis/dependences.py",
        "if _SEVERITY[verdict] > (_SEVERITY[old[1]] if old else 0):",
        "if old is None and verdict is not Verdict.NONE:",
    ),
    Mutant(
        "one good pair makes all pairs of two calls good",
        "analysis/dependences.py",
        "forbids = not all(",
        "forbids = not any(",
    ),
    Mutant(
        "a bad pair is dropped where the order follows",
        "analysis/dependences.py",
        "if forbids or not ordered & bit:",
        "if not ordered & bit:",
    ),
)

_OVERLAP = (
    Mutant(
        "unknown accesses touch nothing",
        "analysis/overlap.py",
        "in second.indices:\n        return Verdict.UNKNOWN",
        "in second.indices:\n        return Verdict.NONE",
    ),
    Mutant(
        "isl's giving up means no",
        "analysis/overlap.py",
        "_VERDICTS = {None: Verdict.UNKNOWN,",
        "_VERDICTS = {None: Verdict.NONE,",
    ),
    Mutant(
        "equal subscripts mean equal iterations",
        "analysis/overlap.py",
        "    if shifts is not None:\n        axes = [",
        "    if shifts is not None and first.indices == second.indices and not any(shifts):\n"
        "        return Verdict.SAME\n    if shifts is not None:\n        axes = [",
    ),
    Mutant(
        "an index that no subscript holds does not matter",
        "analysis/overlap.py",
        "if wide <= distances.keys() and not any(distances.values()):",
        "if distances and not any(distances.values()):",
    ),
    Mutant(
        "subscripts that differ by a constant never meet",
        "analysis/overlap.py",
        "return distance % divisor != 0 if divisor else distance != 0",
        "return distance != 0",
    ),
    Mutant(
        "shifts inside the space never meet",
        "analysis/overlap.py",
        "abs(distances[d]) >= first.end[d] - first.begin[d]",
        "abs(distances[d]) >= 1",
    ),
    Mutant(
        "spaces are all the same",
        "analysis/overlap.py",
        "same_space = first.begin == second.begin and first.end == second.end",
        "same_space = True",
    ),
    Mutant(
        "elements of different sizes meet where they start",
        "analysis/overlap.py",
        "if unit % size == 0 and size == other_size:",
        "if unit % size == 0:",
    ),
    Mutant(
        "isl is asked about equal iterations only",
        "analysis/overlap.py",
        'f"p{d} != q{d}"',
        'f"p{d} = q{d}"',
    ),
)

_LAYOUT = (
    Mutant(
        "offsets of regions are ignored",
        "analysis/layout.py",
        "rest = second.offset - first.offset",
        "rest = 0",
    ),
    Mutant(
        "strides of regions are ignored",
        "analysis/layout.py",
        "if first.strides != second.strides or second.dtype.size != size:",
        "if len(first.strides) != len(second.strides) or second.dtype.size != size:",
    ),
    Mutant(
        "element sizes of regions are ignored",
        "analysis/layout.py",
        "if first.strides != second.strides or second.dtype.size != size:",
        "if first.strides != second.strides:",
    ),
    Mutant(
        "all strides are injective",
        "analysis/layout.py",
        "if stride < reach:",
        "if stride < 0:",
    ),
    Mutant(
        "strides are injective over the first region alone",
        "analysis/layout.py",
        "max(a, b + s) - min(0, s) for a, b, s",
        "a for a, b, s",
    ),
    Mutant(
        "negative strides reach upwards",
        "analysis/layout.py",
        "low += stride * (first if stride > 0 else last)",
        "low += stride * first",
    ),
    Mutant(
        "arrays overlap only if they start together",
        "trace/shape.py",
        "if low >= end or start < 0:",
        "if low != start:",
    ),
)

_INTERPRETER = (
    Mutant(
        "scalars' values are ignored",
        "analysis/interpret.py",
        "self.values[param.sym] = affine.constant(fact)",
        "self.values[param.sym] = affine.constant(0)",
    ),
    Mutant(
        "integers never overflow",
        "analysis/interpret.py",
        "if value is None or not fits(value.span(self.ranges), expr.dtype):",
        "if value is None:",
    ),
    Mutant(
        "a negated guard is the guard",
        "analysis/interpret.py",
        "op = expr.op if positive else _NEGATED[expr.op]",
        "op = expr.op",
    ),
    Mutant(
        "the first guard of an access is every guard",
        "analysis/interpret.py",
        "key = (param, mode, op, subscripts, self.guard, self.loops)",
        "key = (param, mode, op, subscripts, self.loops)",
    ),
    Mutant(
        "a guard lasts after its block",
        "analysis/interpret.py",
        "self.guard, self.exact, ranges = saved",
        "_, self.exact, ranges = saved",
    ),
    Mutant(
        "or means and",
        "analysis/interpret.py",
        'if (expr.op == "&&") != positive:',
        'if (expr.op == "&&") == positive:',
    ),
    Mutant(
        "the right side of || runs where the left holds",
        "analysis/interpret.py",
        'holds = expr.op == "&&"',
        'holds = expr.op == "||"',
    ),
    Mutant(
        "a branch that ran last decides a local",
        "analysis/interpret.py",
        "for sym, value in after_then.items() if get(sym) == value}",
        "for sym, value in after_then.items() if get(sym, value) is not None}",
    ),
    Mutant(
        "loops change no locals",
        "analysis/interpret.py",
        "for sym in (*assigned(body), *declared(body)):",
        "for sym in ():",
    ),
    Mutant(
        "division rounds down",
        "analysis/interpret.py",
        'if op not in ("/", "%") or right <= 0 or left.span(self.ranges)[0] < 0:',
        'if op not in ("/", "%") or right <= 0:',
    ),
    Mutant(
        "a fetched atomic is a write alone",
        "analysis/interpret.py",
        "            self._record(expr.view, expr.indices, Mode.READ, expr.location)"
        "  # type: ignore[union-attr]\n"
        "            self._record(expr.view, expr.indices, Mode.WRITE",
        '            self._record(expr.view, expr.indices, Mode.REDUCE, expr.location, "+")\n'
        "            if False: self._record(expr.view, expr.indices, Mode.WRITE",
    ),
    Mutant(
        "an update reads nothing",
        "analysis/interpret.py",
        "            self._record(stmt.target, stmt.indices, Mode.READ, stmt.location)\n",
        "",
    ),
    Mutant(
        "unsigned loop bounds compare like signed ones",
        "analysis/interpret.py",
        "if common.is_signed or not stmt.sym.dtype.is_signed:",
        "if True:",
    ),
)

_ORDER = (
    Mutant(
        "calls of different spaces share a loop",
        "plan/legality.py",
        "            same = members.get(call.space, 0)\n"
        "            members[call.space] = same | 1 << position",
        "            same = members.get(len(call.space.begin), 0)\n"
        "            members[len(call.space.begin)] = same | 1 << position",
    ),
    Mutant(
        "a Future links nothing",
        "plan/legality.py",
        'links[argument.producer, position] = "scalar"',
        "pass",
    ),
    Mutant(
        "paths do not separate",
        "plan/legality.py",
        "            separate |= apart[source]\n            if forbids >> source & 1:",
        "            if forbids >> source & 1:",
    ),
    Mutant(
        "what a separated call follows is not separated",
        "plan/legality.py",
        "separate |= 1 << source | before[source]",
        "separate |= 1 << source",
    ),
    Mutant(
        "scans share loops",
        "plan/legality.py",
        'if call.pattern not in ("for", "reduce") or',
        'if call.pattern not in ("for", "reduce", "scan") or',
    ),
    Mutant(
        "all accumulators are sums",
        "plan/legality.py",
        "return not workunit.accumulators or _is_sum(workunit)",
        "return True",
    ),
    Mutant(
        "printing is no effect",
        "plan/legality.py",
        'if call.pattern not in ("for", "reduce") or _has_effect(workunit):',
        'if call.pattern not in ("for", "reduce"):',
    ),
    Mutant(
        "groups run in the order of their first calls",
        "plan/partition.py",
        "    groups = sorted(groups)\n",
        "    return sorted(groups)\n",
    ),
    Mutant(
        "the order forgets a dependence",
        "plan/partition.py",
        "if before != number and number not in followers[before]:",
        "if before != number and number not in followers[before] and before < number:",
    ),
    Mutant(
        "the exact search may run a call before its predecessors",
        "plan/partition.py",
        "if done >> call & 1 or self._before[call] & ~(done | group):",
        "if done >> call & 1:",
    ),
    Mutant(
        "the greedy search may close a cycle",
        "plan/partition.py",
        "closed |= groups[number].after",
        "closed |= 0",
    ),
)

_LIVENESS = (
    Mutant(
        "a guarded overwrite kills",
        "analysis/liveness.py",
        "if not (later.exact and mine.box) or mine.indices != other.indices:",
        "if mine.indices != other.indices:",
    ),
    Mutant(
        "an overwrite elsewhere kills",
        "analysis/liveness.py",
        "if not (later.exact and mine.box) or mine.indices != other.indices:",
        "if not (later.exact and mine.box):",
    ),
    Mutant(
        "an overwrite of a part kills",
        "analysis/liveness.py",
        "mine.ranges[number][0] <= other.ranges[number][0]\n        and ",
        "",
    ),
    Mutant(
        "an overwrite of another region kills",
        "analysis/liveness.py",
        "killed |= where == region and _overwrites(other, access)",
        "killed |= _overwrites(other, access)",
    ),
    Mutant(
        "an atomic update kills",
        "analysis/liveness.py",
        "if other.mode is Mode.WRITE:",
        "if other.mode is not Mode.READ:",
    ),
    Mutant(
        "only a reader of the same region reads",
        "analysis/liveness.py",
        "if first <= high and low <= last:",
        "if where == region:",
    ),
    Mutant(
        "nothing is read after the trace",
        "analysis/liveness.py",
        "return Lifetime(readers, not temporary or len(later) > MAX_LATER)",
        "return Lifetime(readers, len(later) > MAX_LATER)",
    ),
    Mutant(
        "no reader comes late",
        "analysis/liveness.py",
        "return Lifetime(readers, not temporary or len(later) > MAX_LATER)",
        "return Lifetime(readers, not temporary)",
    ),
    Mutant(
        "other groups read nothing",
        "analysis/liveness.py",
        "lifetime.escapes or lifetime.readers & ~group",
        "lifetime.escapes",
    ),
    Mutant(
        "a store in a while loop always happens",
        "analysis/interpret.py",
        "saved, self.exact = self.exact, False",
        "saved = self.exact",
    ),
    Mutant(
        "a loop is never left early",
        "analysis/interpret.py",
        "if any(isinstance(s, (nodes.Break, nodes.Continue)) for s in statements(stmt.body)):",
        "if False:",
    ),
    Mutant(
        "a guard that is not understood always holds",
        "analysis/interpret.py",
        "        self.exact &= exact\n",
        "",
    ),
    Mutant(
        "a view that is written before is zero",
        "transform/group.py",
        "if trace.clusters[c].fresh and _all_inside(users[c], inside, group[-1])",
        "if trace.clusters[c].fresh",
    ),
    Mutant(
        "allocated memory is zero",
        "transform/group.py",
        "if trace.clusters[c].fresh and _all_inside(users[c], inside, group[-1])",
        "if _all_inside(users[c], inside, group[-1])",
    ),
)

_SCALARS = (
    Mutant(
        "every view is zero",
        "transform/scalars.py",
        "if self.zero and not loop:",
        "if not loop:",
    ),
    Mutant(
        "each trip of a loop finds zeros",
        "transform/scalars.py",
        "if self.zero and not loop:",
        "if self.zero:",
    ),
    Mutant(
        "each trip of a loop finds dead cells",
        "transform/scalars.py",
        "dead = self.dead and (stores_first or not loop)",
        "dead = self.dead",
    ),
    Mutant(
        "conditional stores move out of their branch",
        "transform/scalars.py",
        "if not any(self._writes_always(body[n]) for n in places):",
        "if False:",
    ),
    Mutant(
        "stores move after a break",
        "transform/scalars.py",
        "return not loop or not any(map(_leaves, body))",
        "return True",
    ),
    Mutant(
        "conditional loads move out of their branch",
        "transform/scalars.py",
        "if self._loads_always(first):",
        "if True:",
    ),
    Mutant(
        "a store reads nothing before it writes",
        "transform/scalars.py",
        "        if self._loads_in(stmt):\n            return False\n",
        "",
    ),
    Mutant(
        "one branch that stores is enough",
        "transform/scalars.py",
        "            return all(\n                any(map(self._touches, side))\n",
        "            return any(\n                any(map(self._touches, side))\n",
    ),
    Mutant(
        "overlapping parameters are apart",
        "transform/scalars.py",
        "if param.rank == 0 or view in overlapping:",
        "if param.rank == 0:",
    ),
    Mutant(
        "a forwarded store does not round",
        "transform/scalars.py",
        "local = fresh(self.view.name, self.view.dtype)",
        "local = fresh(self.view.name, DType.FLOAT64)",
    ),
    Mutant(
        "subscripts with changing locals name one cell",
        "transform/cells.py",
        "        if reads & changing:\n            return None\n",
        "",
    ),
    Mutant(
        "different subscripts name different cells",
        "transform/cells.py",
        "if len(cells) > 1 and not (used <= fixed and _all_differ(list(cells))):",
        "if len(cells) > 1 and not used <= fixed:",
    ),
    Mutant(
        "inner loops visit a cell once",
        "transform/cells.py",
        "if len(cells) > 1 and not (used <= fixed and _all_differ(list(cells))):",
        "if len(cells) > 1 and not _all_differ(list(cells)):",
    ),
    Mutant(
        "atomic updates are plain ones",
        "transform/cells.py",
        "not stmt.atomic and stmt.op in ARITHMETIC_OPS",
        "stmt.op in ARITHMETIC_OPS",
    ),
    Mutant(
        "a dead store's own atomics are dead",
        "transform/cells.py",
        "if target != view or any(\n            isinstance(e, AtomicFetch)",
        "if target != view or any(\n            False and isinstance(e, AtomicFetch)",
    ),
    Mutant(
        "unread locals have no effects",
        "transform/unused.py",
        "isinstance(expr, AtomicFetch) or (isinstance(expr, Call)",
        "False and (isinstance(expr, Call)",
    ),
)

_MERGE = (
    Mutant(
        "scalars of unknown value are one",
        "transform/fuse.py",
        "if isinstance(shape, RegionShape) or _is_known(shape):",
        "if True:",
    ),
    Mutant(
        "an index that a call assigns to is shared",
        "transform/fuse.py",
        "if own in changed:",
        "if False:",
    ),
    Mutant(
        "parameters never overlap",
        "transform/fuse.py",
        "if left.cluster != right.cluster:",
        "if True:",
    ),
    Mutant(
        "subscripts widen without proof",
        "transform/widen.py",
        "return known is not None and _inside(known)",
        "return True",
    ),
    Mutant(
        "locals widen without proof",
        "transform/widen.py",
        "if known is not None and stmt.sym.dtype is DType.INT32 and _inside(known):",
        "if stmt.sym.dtype is DType.INT32 and stmt.value is not None:",
    ),
    Mutant(
        "locals that change widen",
        "transform/widen.py",
        "if isinstance(stmt, Declare) and stmt.sym not in self.changing:",
        "if isinstance(stmt, Declare):",
    ),
)

MUTANTS: tuple[Mutant, ...] = (
    *_DEPENDENCES,
    *_OVERLAP,
    *_LAYOUT,
    *_INTERPRETER,
    *_ORDER,
    *_LIVENESS,
    *_SCALARS,
    *_MERGE,
)
