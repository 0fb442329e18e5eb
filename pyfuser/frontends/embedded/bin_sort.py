"""Kokkos' bin sort: keys are put into bins of equal width, and Views permuted by bin.

Kokkos leaves the order within a bin to chance; here it is that of the keys' places. The
permutation is computed by NumPy, so making it first runs what is pending on the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyfuser.frontends.embedded.data_types import int32
from pyfuser.frontends.embedded.view_memory import handed_out
from pyfuser.frontends.embedded.view_memory import values as elements
from pyfuser.frontends.embedded.views import View, holding
from pyfuser.support.errors import ArgumentError
from pyfuser.trace.memory import Array


class BinOp:
    """How keys fall into bins: the base of BinOp1D and BinOp3D."""

    def __init__(self, keys: Any, max_bins: Any, min_value: Any, max_value: Any) -> None:
        self.keys = keys
        self.max_bins = max_bins
        self.min_value = min_value
        self.max_value = max_value

    def count(self) -> int:
        """The number of bins."""
        raise NotImplementedError

    def bins(self, keys: Array) -> Array:
        """The bin of each key."""
        raise NotImplementedError

    def order(self, keys: Array) -> Array:
        """The places of the keys in the order that they have within a bin."""
        raise NotImplementedError


class BinOp1D(BinOp):
    """`max_bins` bins between the least and the greatest key, and one for the greatest itself."""

    def count(self) -> int:
        return int(self.max_bins) + 1

    def bins(self, keys: Array) -> Array:
        width = float(self.max_value) - float(self.min_value)
        scale = 1.0 if keys.dtype.kind in "iu" and width <= self.max_bins else self.max_bins / width
        return np.trunc(scale * (keys.astype(np.float64) - float(self.min_value))).astype(np.int64)

    def order(self, keys: Array) -> Array:
        return np.argsort(keys, kind="stable")


class BinOp3D(BinOp):
    """A grid of bins for keys of three coordinates, a row each."""

    def __init__(
        self,
        keys: Any,
        max_bins: Sequence[int],
        min_value: Sequence[float],
        max_value: Sequence[float],
    ) -> None:
        super().__init__(keys, list(max_bins), list(min_value), list(max_value))

    def count(self) -> int:
        return int(np.prod(self.max_bins))

    def bins(self, keys: Array) -> Array:
        low, high = np.array(self.min_value, float), np.array(self.max_value, float)
        cells = np.trunc((keys - low) * (np.array(self.max_bins) / (high - low))).astype(np.int64)
        _, n, m = self.max_bins
        result: Array = (cells[:, 0] * n + cells[:, 1]) * m + cells[:, 2]
        return result

    def order(self, keys: Array) -> Array:
        return np.lexsort((-keys[:, 2], -keys[:, 1], -keys[:, 0]))


class BinSort:
    """A permutation that sorts Views by the bins of their keys."""

    def __init__(self, keys: Any, bin_op: BinOp, sort_within_bins: bool = False) -> None:
        self.keys = keys
        self.bin_op = bin_op
        self.sort_within_bins = sort_within_bins
        self._permutation: Array | None = None
        self._counts: Array = np.zeros(bin_op.count(), np.int64)

    def create_permute_vector(self) -> None:
        """Compute the permutation of the present keys.

        Raises ArgumentError for a key outside of all bins.
        """
        ours = type(self.bin_op) in (BinOp1D, BinOp3D)
        keys = np.asarray(elements(self.keys) if ours else handed_out(self.keys))
        bins, count = self.bin_op.bins(keys), self.bin_op.count()
        if bins.size and not 0 <= bins.min() <= bins.max() < count:
            wrong = int(np.flatnonzero((bins < 0) | (bins >= count))[0])
            raise ArgumentError(
                f"BinSort: key {wrong} ({keys[wrong]}) is not between min_value and max_value"
            )
        order = self.bin_op.order(keys) if self.sort_within_bins else np.arange(len(bins))
        self._permutation = order[np.argsort(bins[order], kind="stable")]
        self._counts = np.bincount(bins, minlength=count)

    def get_permute_vector(self) -> View:
        """For each sorted place, the place that its element has before."""
        return holding(self._created(), int32)

    def get_bin_count(self) -> View:
        """The number of keys in each bin."""
        self._created()
        return holding(self._counts, int32)

    def get_bin_offsets(self) -> View:
        """The first sorted place of each bin."""
        self._created()
        return holding(np.cumsum(self._counts) - self._counts, int32)

    def sort(self, values: Any) -> None:
        """Permute the first rows of a View in place, as many as there are keys.

        Raises ArgumentError if there are fewer.
        """
        array, order = np.asarray(elements(values)), self._created()
        if len(array) < len(order):
            raise ArgumentError(f"BinSort: {len(order)} keys, but a View of {len(array)} rows")
        array[: len(order)] = array[order]

    def _created(self) -> Array:
        if self._permutation is None:
            raise ArgumentError("BinSort: call create_permute_vector first")
        return self._permutation
