"""The kernel that sets scalars in memory for others to read: see `engine.gpu.scalars`.

Its parameters are the values, which the driver copies when it is launched. So the host may go on at
once, and the memory changes in the order of the stream.
"""

from __future__ import annotations

from pyfuser.codegen.gpu.dialect import Dialect
from pyfuser.codegen.gpu.grid import GpuKernel
from pyfuser.codegen.gpu.headers import headers

ENTRY = "pf_set_scalars"

WORDS = 32
"""Scalars that one launch sets, of 8 bytes each: a thread for each."""

_SOURCE = """\
namespace pf {{

{vocabulary}
struct scalars {{
    unsigned long long words[{words}];
}};

{head}(
    unsigned long long* const memory,
    const scalars given
) {{
    memory[pf_thread(x)] = given.words[pf_thread(x)];
}}

}}  // namespace pf
"""


def emit(dialect: Dialect) -> GpuKernel:
    """The kernel; it takes the address of memory and WORDS words."""
    vocabulary = "\n".join(headers((), dialect))
    head = dialect.kernel(ENTRY, WORDS)
    source = f"// set_scalars\n{dialect.globals}" + _SOURCE.format(
        vocabulary=vocabulary, head=head, words=WORDS
    )
    return GpuKernel(source, (ENTRY,), (), "one", (), 0, dialect.options)
