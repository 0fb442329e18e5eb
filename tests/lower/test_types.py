import numpy as np
import pytest

from pyfuser.ir.dtypes import DType
from pyfuser.lower.types import scalar_dtype


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, DType.BOOL),
        (2**31 - 1, DType.INT32),
        (-(2**31) + 1, DType.INT32),
        (2**31, DType.INT64),
        (-(2**31), DType.INT64),  # 32 bits long, as PyKokkos counts
        (2**63 - 1, DType.INT64),
        (1.5, DType.FLOAT64),
        (1j, DType.COMPLEX128),
        (np.float32(1), DType.FLOAT32),
        (np.float64(1), DType.FLOAT64),
        (np.uint8(1), DType.UINT8),
        (np.bool_(True), DType.BOOL),
    ],
)
def test_a_number_has_the_type_that_pykokkos_infers(value: object, dtype: DType) -> None:
    assert scalar_dtype(value) is dtype


@pytest.mark.parametrize("value", ["1", None, [1], 2**63, np.zeros(()), np.float16(1)])
def test_what_is_no_number_of_the_language_has_no_type(value: object) -> None:
    assert scalar_dtype(value) is None
