"""The namespace of the embedded PyKokkos: what `import pykokkos as pk` gives.

Nothing is here that no PyKokkos has, but `__version__`; until 2023 `from_numpy` was here, too.
`pykokkos-stubs` has its types.
"""

# ruff: noqa: F401

import math as _math
import sys as _sys
from enum import Enum as _Enum

from pyfuser.frontends.embedded.annotations import (
    Acc,
    ScratchView,
    ScratchView1D,
    ScratchView2D,
    ScratchView3D,
    ScratchView4D,
    ScratchView5D,
    ScratchView6D,
    ScratchView7D,
    ScratchView8D,
    View1D,
    View2D,
    View3D,
    View4D,
    View5D,
    View6D,
    View7D,
    View8D,
)
from pyfuser.frontends.embedded.array_functions import (
    all,
    any,
    argmax,
    col,
    dot,
    expand_dims,
    find_max,
    hstack,
    in1d,
    index,
    linspace,
    logspace,
    matmul,
    mean,
    np_matmul,
    ravel,
    reshape,
    searchsorted,
    sum,
    transpose,
    unique,
    var,
)
from pyfuser.frontends.embedded.atomics import (
    atomic_add,
    atomic_compare_exchange,
    atomic_fetch_add,
    atomic_fetch_and,
    atomic_fetch_div,
    atomic_fetch_lshift,
    atomic_fetch_max,
    atomic_fetch_min,
    atomic_fetch_mod,
    atomic_fetch_mul,
    atomic_fetch_or,
    atomic_fetch_rshift,
    atomic_fetch_sub,
    atomic_fetch_xor,
    atomic_increment,
)
from pyfuser.frontends.embedded.bin_sort import BinOp, BinOp1D, BinOp3D, BinSort
from pyfuser.frontends.embedded.creation import (
    array,
    asarray,
    astype,
    from_numpy,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from pyfuser.frontends.embedded.data_types import (
    DataType,
    DataTypeClass,
    bool,
    complex64,
    complex128,
    double,
    float,
    float32,
    float64,
    get_default_precision,
    int8,
    int16,
    int32,
    int64,
    real,
    result_type,
    set_default_precision,
    uint8,
    uint16,
    uint32,
    uint64,
)
from pyfuser.frontends.embedded.decorators import (
    Decorator,
    ViewTypeInfo,
    callback,
    classtype,
    function,
    functor,
    main,
    workload,
    workunit,
)
from pyfuser.frontends.embedded.dispatch import (
    parallel_for,
    parallel_reduce,
    parallel_scan,
)
from pyfuser.frontends.embedded.ext_module import compile_into_module
from pyfuser.frontends.embedded.misc import (
    Timer,
    cyl_bessel_j0,
    cyl_bessel_j1,
    fence,
    finalize,
    finfo,
    flush,
    generic_error,
    iinfo,
    printf,
)
from pyfuser.frontends.embedded.policies import (
    AUTO,
    ExecutionPolicy,
    Iterate,
    MDRangePolicy,
    PerTeam,
    PerThread,
    RangePolicy,
    Rank,
    TeamMember,
    TeamPolicy,
    TeamThreadMDRange,
    TeamThreadRange,
    ThreadVectorRange,
    single,
)
from pyfuser.frontends.embedded.random import (
    Random_XorShift64_Pool,
    Random_XorShift1024_Pool,
    RandomPool,
    rand,
)
from pyfuser.frontends.embedded.spaces import (
    ExecutionSpace,
    ExecutionSpaceInstance,
    Layout,
    MemorySpace,
    Trait,
    disable_uvm,
    enable_uvm,
    get_default_layout,
    get_default_memory_space,
    get_default_space,
    initialize,
    is_host_execution_space,
    is_uvm_enabled,
    set_default_space,
    set_device_id,
)
from pyfuser.frontends.embedded.ufuncs import (
    add,
    broadcast_view,
    ceil,
    copyto,
    cos,
    divide,
    equal,
    exp,
    exp2,
    floor,
    floor_divide,
    fmax,
    fmin,
    fmod,
    greater,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    multiply,
    negative,
    positive,
    power,
    reciprocal,
    round,
    sign,
    sin,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    true_divide,
    trunc,
)
from pyfuser.frontends.embedded.unknown_names import instead as _instead
from pyfuser.frontends.embedded.unknown_names import warn_of_star as _warn_of_star
from pyfuser.frontends.embedded.views import Subview, View, ViewType
from pyfuser.frontends.embedded.workloads import execute
from pyfuser.version import VERSION as _VERSION

# Members of these enumerations are names of the package too: pk.OpenMP, pk.LayoutLeft, ...
_ENUMERATIONS: tuple[type[_Enum], ...] = (ExecutionSpace, Layout, MemorySpace, Trait)
for _enumeration in _ENUMERATIONS:
    globals().update(_enumeration.__members__)

e = _math.e
pi = _math.pi
inf = _math.inf
nan = _math.nan

#: That of PyKokkos whose API this is, and who provides it.
__version__ = f"0.1+pyfuser.{_VERSION}"
__array_api_version__ = "2021.12"

# PyKokkos has these as modules of the package; here they are the package itself.
interface = kokkos_manager = _sys.modules[__name__]


def __getattr__(name: str) -> object:
    """A module of the package, which `import pykokkos.linalg.l3_blas as blas` gets so."""
    if name == "__all__":
        _warn_of_star()
        return ["__array_api_version__"]
    for package in ("pykokkos", "pykokkos.interface", "pykokkos.lib"):
        module = _sys.modules.get(f"{package}.{name}")
        if module is not None and not name.startswith("_"):
            return module
    hint = _instead(name)
    message = f"module 'pykokkos' has no attribute {name!r}{hint}"
    # Python looks for a name that is close among those of `obj`.
    raise AttributeError(message, name=name, obj=None if hint else _sys.modules[__name__])
