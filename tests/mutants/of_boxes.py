"""Wrong tables: indices that are no row and column, sums in another order."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_LAW = "plan/test_boxes.py::"
_KEPT = f"{_LAW}test_calls_that_keep_their_index"

MUTANTS = (
    Mutant(
        "a part of a row is a row",
        "plan/rewrites/delinearize.py",
        "if columns is None or call.space.end[0] % columns:",
        "if columns is None:",
        _KEPT,
    ),
    Mutant(
        "a range may begin anywhere",
        "plan/rewrites/delinearize.py",
        "space.begin == (0,)",
        "len(space.begin) == 1",
        _KEPT,
    ),
    Mutant(
        "an index may change",
        "plan/rewrites/delinearize.py",
        "        and workunit.indices[0] not in assigned(workunit.body)\n",
        "",
        f"{_LAW}test_an_index_that_changes",
    ),
    Mutant(
        "other divisions of the index do not matter",
        "plan/rewrites/delinearize.py",
        "return made if _is_linear(made.workunit, call.workunit.indices[0]) else None",
        "return made",
        _KEPT,
    ),
    Mutant(
        "rows may have no length",
        "plan/rewrites/delinearize.py",
        "and 1 < length < extent",
        "and length < extent",
        f"{_LAW}test_rows_of_no_length",
    ),
    Mutant(
        "products and effects may have two indices",
        "plan/rewrites/delinearize.py",
        "        and mergeable(call)\n",
        "",
        f"{_LAW}test_a_product_is_no_sum",
    ),
    Mutant(
        "lines follow where others cannot",
        "plan/rewrites/delinearize.py",
        "if trace.calls[place].space not in torn",
        "if True",
        f"{_LAW}test_lines_stay_lines_where_some_cannot_follow",
    ),
    Mutant(
        "values that still decide are forgotten",
        "plan/rewrites/delinearize.py",
        "if isinstance(shape, ScalarShape) and place not in matters",
        "if isinstance(shape, ScalarShape)",
        f"{_LAW}test_what_still_decides_is_kept",
    ),
    Mutant(
        "sums of all orders share loops",
        "plan/legality.py",
        "earlier &= ~others if other_order != order else -1",
        "pass",
        f"{_LAW}test_sums_in_different_orders_have_loops_of_their_own",
    ),
    Mutant(
        "the index counts columns only",
        "plan/rewrites/coarse_body.py",
        "        body = (Declare(index, whole), *body)\n    sums",
        "        body = (Declare(index, Read(column)), *body)\n    sums",
        "ir/test_coarse.py::test_boxed",
    ),
    Mutant(
        "sums have the tiles of rows",
        "plan/rewrites/coarse_body.py",
        "replace(accumulator, flat=True)",
        "accumulator",
        "codegen/test_flat_sums.py::test_bits",
    ),
    Mutant(
        "a part of a row is a whole one",
        "codegen/cpu/runtime/boxes.h",
        "if (column == 0 && rows > 0) {",
        "if (rows > 0) {",
        "codegen/test_flat_sums.py::test_bits",
    ),
    Mutant(
        "terms of a tile are kept from the row's beginning",
        "codegen/cpu/wavefront/reduce.py",
        " + column - pf_first",
        " - pf_first",
        "codegen/test_flat_sums.py::test_in_sweeps",
    ),
)
