"""PyKokkos' policies as ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfuser.frontends.embedded import policies, spaces
from pyfuser.frontends.embedded.policies import ExecutionPolicy
from pyfuser.frontends.upstream.views import NotOurs

_SPACES = {name: spaces.ExecutionSpace[name] for name in ("OpenMP", "Serial")}


class Policies:
    """Knows the classes of the PyKokkos that is hooked."""

    def __init__(self, pykokkos: Any) -> None:
        self._pykokkos = pykokkos

    def ours(self, policy: Any) -> ExecutionPolicy:
        """The policy of ours that has the same indices.

        Raises NotOurs for the kinds and execution spaces that we do not have.
        """
        pk = self._pykokkos
        kind = type(policy)
        if kind is int or isinstance(policy, (int, np.integer)):
            return policies.RangePolicy(self._space(pk.get_default_space()), 0, int(policy))
        if kind is pk.RangePolicy:
            space = self._space(policy.space)
            return policies.RangePolicy(space, policy.begin, policy.end)
        if kind is pk.MDRangePolicy:
            return policies.MDRangePolicy(
                list(policy.begin), list(policy.end), space=self._space(policy.space)
            )
        if kind is pk.TeamPolicy:
            return policies.TeamPolicy(
                self._space(policy.space), policy.league_size, policy.team_size
            )
        raise NotOurs(f"a {kind.__name__}")

    def _space(self, space: Any) -> spaces.ExecutionSpace:
        space = getattr(space, "space", space)  # of an instance
        if space is self._pykokkos.ExecutionSpace.Default:
            space = self._pykokkos.get_default_space()
        known = _SPACES.get(getattr(space, "name", ""))
        if known is None:
            raise NotOurs(f"the execution space {space}")
        return known

    def is_debug(self, policy: Any) -> bool:
        """Whether PyKokkos calls the Python function itself for each index."""
        debug = self._pykokkos.ExecutionSpace.Debug
        space = getattr(policy, "space", self._pykokkos.ExecutionSpace.Default)
        space = getattr(space, "space", space)
        if space is self._pykokkos.ExecutionSpace.Default:
            space = self._pykokkos.get_default_space()
        return space is debug
