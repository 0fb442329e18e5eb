"""Stores past the caches: results that are larger than these, and that no later call reads.

A store to memory that is in no cache reads the line first, to change a part of it; a streaming
store of a whole line does not, which saves a third of the traffic of a map. g++ has no such stores
for loops. So a loop runs in blocks, whose results go to an array in the first-level cache, and from
there to memory, line by line (`pf_stream`).
"""

from __future__ import annotations

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.blocks import Blocks, array_lines, segment_loops
from pyfuser.codegen.cpu.context import Bounds, Context, closed, outer_loops
from pyfuser.ir.nodes import Read, Store, Sym
from pyfuser.ir.visit import statements

BYTES = 8192
"""What the results of a block may take: a part of the first-level cache."""

PRELUDE = """\
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX512F__)
typedef long long pf_line __attribute__((vector_size(64)));
static inline void pf_past(char* to, pf_line line) {
    __builtin_ia32_movntdq512((pf_line*)to, line);
}
#elif defined(__GNUC__) && !defined(__clang__) && defined(__AVX__)
typedef long long pf_line __attribute__((vector_size(32)));
static inline void pf_past(char* to, pf_line line) {
    __builtin_ia32_movntdq256((pf_line*)to, line);
}
#else
typedef int64_t pf_line;
static inline void pf_past(char* to, pf_line line) { __builtin_memcpy(to, &line, sizeof line); }
#endif
// Copies elements to memory that is not read soon: whole lines past the caches, the rest plainly.
template <typename T> static inline void pf_stream(T* to, const T* from, int64_t count) {
    constexpr int64_t whole = sizeof(pf_line);
    char* out = (char*)to;
    const char* in = (const char*)from;
    int64_t bytes = count * (int64_t)sizeof(T), head = -(intptr_t)out & (whole - 1);
    if (head > bytes) head = bytes;
    __builtin_memcpy(out, in, head);
    for (out += head, in += head, bytes -= head; bytes >= whole; bytes -= whole) {
        pf_line line;
        __builtin_memcpy(&line, in, whole);
        pf_past(out, line);
        out += whole, in += whole;
    }
    __builtin_memcpy(out, in, bytes);
}
// Before other threads may read what was streamed.
static inline void pf_streamed() {
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}
"""


def streamed(context: Context) -> list[Sym]:
    """The views whose results take that way. All their stores are at the iteration's indices."""
    own = tuple(Read(sym) for sym in context.workunit.indices)
    stores = [s for s in statements(context.workunit.body) if isinstance(s, Store)]
    return [
        param.sym
        for param, view in zip(context.workunit.params, context.spec.views, strict=True)
        if view is not None
        and view.streamed
        and all(s.indices == own for s in stores if s.view == param.sym)
    ]


def streaming_nest(
    context: Context, blocks: Blocks, views: list[Sym], bounds: list[Bounds]
) -> list[str]:
    """The loops of a map, the innermost in blocks, each with its results' way to memory."""
    order, e = context.spec.order, context.expressions
    loops, depth, (first, last) = outer_loops(context, order, bounds)
    own = tuple(Read(sym) for sym in context.workunit.indices)
    cells = {sym: e.element(Store(sym, own, own[0])) for sym in views}
    size = blocks.size
    if not blocks.arrays:
        size = max(BYTES // sum(sym.dtype.size for sym in views), 64) // 64 * 64
    e.streamed = {sym: context.unique.take(f"{context.names[sym]}_lines") for sym in views}
    lines = array_lines(blocks, 1)
    lines += [
        f"{INDENT}alignas(64) {sym.dtype.cpp} {name}[{size}];" for sym, name in e.streamed.items()
    ]
    indent, counter = INDENT * depth, context.counter(order.axes[-1])
    lines += [
        *loops,
        f"{indent}for (int64_t at = {first}; at < {last}; at += {size}) {{",
        f"{indent}{INDENT}const int64_t left = {last} - at, count = left < {size} ? left : {size};",
        *segment_loops(context, blocks, order.axes[-1], depth + 1, context.statements.print),
        f"{indent}{INDENT}const int64_t {counter} = at;",
        *context.narrowed(depth + 1),
        *(
            f"{indent}{INDENT}pf_stream(&{cells[sym]}, {name}, count);"
            for sym, name in e.streamed.items()
        ),
        *closed(depth),
        f"{INDENT}pf_streamed();",
    ]
    e.streamed = {}
    return lines
