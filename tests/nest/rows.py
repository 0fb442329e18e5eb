"""Bodies whose trips read rows again, which are copied, and others beside them."""

from __future__ import annotations

from tests.nest.harness import body, variants


@body("strip-mine copy-rows", copies=1)
@body("strip-mine copy-rows", copies=1, dtype="float32")
@body("strip-mine copy-rows", copies=1, dtype="int64")
@body("strip-mine copy-rows", copies=1, dtype="int32")
def nearest(i, a, t, z, m, d):
    least: float = 1e9
    for j in range(m):
        total: float = 0.0
        for c in range(d):
            step: float = a[i][c] - t[j][c]
            total += step * step
        if total < least:
            least = total
    z[i] = least


@body(execution="Serial")
def nearest_in_order(i, a, t, z, m, d):
    for j in range(m):
        for c in range(d):
            z[i] += a[i][c] * t[j][c]


@body("strip-mine copy-rows", copies=1)
def nearest_summed(i, acc, a, t, z, m, d):
    total: float = 0.0
    for j in range(m):
        for c in range(d):
            total = total * 0.5 + a[i][c] * t[j][c]
    z[i] = total
    acc += total


@body("strip-mine copy-rows", copies=2)
def two_rows(i, a, t, z, m, d):
    total: float = 0.0
    for j in range(m):
        k: int = d - 1
        for c in range(d):
            total += a[i][c] * t[j][c] - a[i][k - c]
    z[i] = total


LOOPS = """
total: float = 0.0
for j in range(m):
    for c in range(d):
        total = total * 0.5 + a[i][c] * t[j][c]
z[i] = total
"""
FIRST, STEP, LAST = "total: float", "total = total * 0.5 + a[i][c] * t[j][c]", "z[i] = total"
AGAIN = LOOPS[LOOPS.index("for j") : LOOPS.index(LAST)]

COPIES_ONE = {
    "deeper": ("for j", "for k in range(2, 5):\n  for j", "    for c", "   for c"),
    "changed_after": (LAST, "for c in range(d):\n    a[i][c] += total"),
    "made_before": (FIRST, f"for c in range(d):\n    a[i][c] = a[i][c] * 0.5\n{FIRST}"),
    "of_known_trips": ("range(m)", "range(16)"),
    "written_apart": (LAST, "b[i][40] = total"),
    "shorter_without_trips": ("range(d)", "range(wide)"),
    "shorter_in_trips": ("for j in range(m)", "for k in range(m):\n  for j in range(20)",
                         "    for c", "   for c", "range(d)", "range(wide)"),
}  # fmt: skip
COPIES_TWO = {
    "twice": (LAST, AGAIN + LAST),
    "changed_between": (LAST, f"a[i][0] = total\n{AGAIN}{LAST}"),
}
OTHERS = {
    "written": (LAST, "    a[i][0] = total"),
    "written_by_atomics": (LAST, "    pk.atomic_add(a, [i, 0], total)"),
    "atomics_before": (FIRST, f"pk.atomic_add(a, [i, 0], 1.0)\n{FIRST}"),
    "skipped": ("    for c", "    if x[i] > 0.1 * j:\n     for c"),
    "skipped_elements": (STEP, "if t[j][c] > 0.0:\n            total = total * 0.5 + a[i][c]"),
    "short_circuit": (STEP, "if t[j][c] > 0.0 and a[i][c] > 0.0:\n            total += 0.1 * j"),
    "chosen_by_data": ("a[i][c] * t[j][c]", "(a[i][c] if t[j][c] > 0.0 else 0.0)"),
    "until_a_row_is_full": (STEP, f"{STEP}\n        if total > 2.0:\n            break"),
    "until_a_trip": ("    for c", "    if total > 2.0:\n        break\n    for c"),
    "own_ends_of_rows": ("range(d)", "range(i % d)"),
    "own_trips_around": ("range(m)", "range(i % m)"),
    "ends_of_data": (FIRST, f"e: int = near[0][0] % 9\n{FIRST}", "range(d)", "range(e)"),
    "ends_that_change": (FIRST, f"e: int = d\n{FIRST}", "range(d)", "range(e)",
                         LAST, f"    e = e - 1\n{LAST}"),
    "ends_of_elements": ("range(d)", "range(near[0][0])"),
    "trips_of_elements": ("range(m)", "range(near[0][0])"),
    "unsigned_ends": (FIRST, f"e: pk.uint32 = five\n{FIRST}", "range(d)", "range(e)"),
    "from_one": ("range(d)", "range(1, d)"),
    "every_other": ("range(d)", "range(0, d, 2)"),
    "moved_on": (STEP, f"{STEP}\n        c += 1"),
    "rows_of_trips": ("a[i]", "a[(i + j) % n]"),
    "rows_of_data": (FIRST, f"at: int = to[i]\n{FIRST}", "a[i]", "a[at]"),
    "rows_of_elements": ("a[i]", "a[i * hit[0]]"),
    "rows_that_change": (FIRST, f"at: int = i\n{FIRST}", "a[i]", "a[at]",
                         LAST, f"    at = i - at\n{LAST}"),
    "one_element": ("a[i][c]", "a[i][3]"),
    "rows_of_bools": (STEP, "if seen[i][c]:\n            total += t[j][c]"),
    "of_few_trips": ("range(m)", "range(15)"),
    "read_once": ("range(m)", "range(1)"),
}  # fmt: skip

variants(__name__, "strip-mine copy-rows", LOOPS, COPIES_ONE, copies=1)
variants(__name__, "strip-mine copy-rows", LOOPS, COPIES_TWO, copies=2)
variants(__name__, "", LOOPS, {"overlapping": COPIES_ONE["written_apart"]}, aliased="a b", copies=0)
variants(__name__, "", LOOPS, OTHERS, copies=0)
variants(__name__, "strip-mine", LOOPS, {"same_row": ("a[i][c]", "t[29][c]")}, copies=0)

BOX = """
total: float = 0.0
for c in range(d):
    total = total * 0.5 + a[j][c] * t[i][c]
b[i][j] = total
"""
LAST = "b[i][j] = total"
AGAIN = BOX[BOX.index("for c") : BOX.index(LAST)]
COPIED_BOXES = {
    "product_of_rows": (),
    "of_both": ("t[i][c]", "t[i][c] - a[j][d - 1 - c]", LAST, f"{AGAIN}{LAST}"),
}
OTHER_BOXES = {
    "rows_of_both": ("a[j]", "a[(i + j) % n]"),
    "ends_of_rows": (LAST, f"if i == 0:\n    a[j][40] = total\n{LAST}"),
    "summed_box": (LAST, "acc += total"),
}
IN_TRIPS = ("for c", "for k in range(m):\n   for c", "a[j]", "a[(i + j) % n]", "t[i]", "t[k]")
variants(__name__, "strip-mine copy-rows unroll-and-jam", BOX, COPIED_BOXES, first="i, j", m=18)
variants(__name__, "strip-mine copy-rows", BOX, {"in_trips": IN_TRIPS}, first="i, j", copies=1)
variants(__name__, "unroll-and-jam", BOX, OTHER_BOXES, first="i, j", copies=0)
