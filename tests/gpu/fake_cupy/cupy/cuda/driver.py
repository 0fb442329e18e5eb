"""See README.md."""

from __future__ import annotations

from cupy.cuda import runtime
from cupy.cuda._kernels import ENTRIES as _ENTRIES
from cupy.cuda._machine import MACHINE as _MACHINE
from cupy.cuda._machine import Failure as _Failure

CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0
CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1
CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3
CU_FUNC_ATTRIBUTE_NUM_REGS = 4


def launchKernel(
    f: int,
    grid_dim_x: int,
    grid_dim_y: int,
    grid_dim_z: int,
    block_dim_x: int,
    block_dim_y: int,
    block_dim_z: int,
    shared_mem_bytes: int,
    stream: int,
    kernel_params: int,
    extra: int,
) -> None:
    if not getattr(runtime._thread, "context", False):
        raise _Failure("CUDA_ERROR_INVALID_CONTEXT: this thread has no context")
    blocks, threads = (grid_dim_x, grid_dim_y, grid_dim_z), (block_dim_x, block_dim_y, block_dim_z)
    _MACHINE.launched += 1
    _MACHINE.enqueue(stream, _ENTRIES[f].bound(kernel_params, blocks, threads, shared_mem_bytes))


def funcGetAttribute(attribute: int, f: int) -> int:
    entry = _ENTRIES[f]
    return {CU_FUNC_ATTRIBUTE_NUM_REGS: 16 + 2 * len(entry.sizes)}.get(attribute, 0)
