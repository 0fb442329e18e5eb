"""Kernels that have each path of the GPU's code, with results that no order of additions changes."""

from __future__ import annotations

from tests.codegen.build import Case

CASES: dict[str, Case] = {}
