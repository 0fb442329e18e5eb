"""GPU kernels compute what the reference interpreter does: here on the host, thread by thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyfuser.codegen.gpu import declined
from pyfuser.codegen.spec import spec_of
from tests.engine.test_native import EXACT_REDUCTIONS, MAPS
from tests.gpu.emulator import Emulated
from tests.gpu.cases import CASES, CLOSE

EXACT = {
    name: tested
    for name, tested in {**MAPS, **EXACT_REDUCTIONS, **CASES}.items()
    if not declined(spec_of(tested.kernel))
}


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    return Emulated({**EXACT, **CLOSE}, tmp_path_factory.mktemp("emulated"))


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", EXACT)
def test_emulated_equals_interpreted(name: str, seed: int, emulated: Emulated) -> None:
    expected, results = EXACT[name].interpreted()
    arguments, actual = emulated.run(name, seed)
    assert actual == results
    for array, reference in zip(arguments, expected, strict=True):
        np.testing.assert_array_equal(array, reference)


@pytest.mark.parametrize("name", CLOSE)
def test_complex_functions_are_those_of_the_reference(name: str, emulated: Emulated) -> None:
    expected, _ = CLOSE[name].interpreted()
    arguments, _ = emulated.run(name)
    single = expected[0].dtype == "complex64"
    for array, reference in zip(arguments, expected, strict=True):
        np.testing.assert_allclose(array, reference, rtol=1e-5 if single else 1e-13)
