"""Loads of 16 bytes on GPUs (see `codegen/gpu/packed.py`)."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TEST = "gpu/test_vectors.py::"
_REFUSED = _TEST + "test_what_has_no_vectors_and_why"
_ALIGNED = _TEST + "test_when_vectors_are_aligned"
_LAUNCHES = "gpu/test_vector_launches.py::"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "views that overlap are loaded ahead",
        "codegen/gpu/packed.py",
        "if not view.restrict:",
        "if False:",
        _REFUSED,
    ),
    Mutant(
        "several elements of an iteration are kept in one vector",
        "codegen/gpu/packed.py",
        "if any(other == sym and at != indices for other, at in self.places):",
        "if False:",
        _REFUSED,
    ),
    Mutant(
        "one element of all rows is kept in vectors",
        "codegen/gpu/packed.py",
        "if offset is None or not self._own(indices):",
        "if offset is None:",
        _REFUSED,
    ),
    Mutant(
        "vectors are stored where some iterations store",
        "codegen/gpu/packed.py",
        "for stmt in self.workunit.body\n            if isinstance(stmt, (nodes.Store",
        "for stmt in statements(self.workunit.body)\n            if isinstance(stmt, (nodes.Store",
        _REFUSED,
    ),
    Mutant(
        "vectors are loaded where some iterations load",
        "codegen/gpu/packed.py",
        " and place in self.always",
        "",
        _REFUSED,
    ),
    Mutant(
        "what shows the order of iterations is vectorised",
        "codegen/gpu/packed.py",
        "if effects(workunit).observable:",
        "if False:",
        _REFUSED,
    ),
    Mutant(
        "vectors begin anywhere",
        "codegen/gpu/packed.py",
        "if len(phases) > 1:",
        "if False:",
        _REFUSED,
    ),
    Mutant(
        "offsets do not move addresses",
        "codegen/gpu/packed.py",
        ".bit_length() - 1}) + {offset})",
        ".bit_length() - 1}))",
        _ALIGNED,
    ),
    Mutant(
        "rows may have any length",
        "codegen/gpu/packed.py",
        'bits += [f"v{position}" for position in vectors.strides]',
        "bits += []",
        _ALIGNED,
    ),
    Mutant(
        "what is read before it is written is not loaded",
        "codegen/gpu/packed.py",
        "self._reads_first(place), True)",
        "False, True)",
        _TEST + "test_vectors_compute_the_same",
    ),
    Mutant(
        "vectors need not be aligned",
        "engine/gpu/launchable.py",
        " and self._aligned(packed)",
        "",
        _LAUNCHES + "test_columns_of_an_odd_length_are_not",
    ),
    Mutant(
        "rows may be of any length for vectors",
        "engine/gpu/variants.py",
        " and extents[along] >= ROW * lanes",
        "",
        _LAUNCHES + "test_short_rows_are_not",
    ),
    Mutant(
        "vectors may spill",
        "engine/gpu/variants.py",
        "return slower or vectors.spilled > plain.spilled",
        "return slower",
        _LAUNCHES + "test_a_kernel_that_spills_is_not_launched",
    ),
)
