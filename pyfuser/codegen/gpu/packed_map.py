"""Device code for a parallel_for: a thread takes neighbouring iterations, see `gpu.packed`.

A group that reaches over an end of the space runs one iteration after the other, as ever.
"""

from __future__ import annotations

from pyfuser.codegen.c.statements import INDENT
from pyfuser.codegen.cpu.context import closed
from pyfuser.codegen.gpu import packed
from pyfuser.codegen.gpu.context import GpuContext, indented
from pyfuser.codegen.gpu.map import rows
from pyfuser.codegen.gpu.packed import Place, Plan, Vector, Vectors
from pyfuser.ir import nodes

VECTORS = "pf_vectors"


def emit(context: GpuContext, widest: int | None = None) -> tuple[Vectors | None, str]:
    """The second entry point of a map and its code; None and "" if it has none."""
    found = packed.plan(context.spec, packed.WIDEST if widest is None else widest)
    if isinstance(found, str):
        return None, ""
    context.uses("vector")
    take, axis, lanes = context.unique.take, found.axis, found.lanes
    i, begin, end = context.counter(axis), context.begin[axis], context.end[axis]
    first, group = take(f"{i}_first"), take(f"{i}_group")
    lead = found.vectors[0]
    phase = f"(int64_t)((uint64_t){context.names[lead.place[0]]} / {lead.dtype.size})"
    if lead.offset:
        phase += f" {'+' if lead.offset > 0 else '-'} {abs(lead.offset)}"
    head = [f"{INDENT}const int64_t {first} = {begin} - (({phase} + {begin}) & {lanes - 1});"]
    outer, depth = rows(context)
    loop = [
        f"for (int64_t {group} = {first} + {lanes} * pf_first(x); {group} < {end}; "
        f"{group} += {lanes} * pf_step(x)) {{",
        f"    if ({begin} <= {group} && {group} + {lanes} <= {end}) {{",
        *indented(_whole(context, found, i, group), 2),
        "    } else {",
        "        #pragma unroll 1",
        f"        for (int64_t {i} = {group} < {begin} ? {begin} : {group}; "
        f"{i} < {end} && {i} < {group} + {lanes}; ++{i}) {{",
        *context.body(3),
        "        }",
        "    }",
    ]
    lines = [*head, *outer, *indented(loop, depth), *closed(depth)]
    code = (
        "\n" + context.head(VECTORS, context.spec.tuning.gpu_threads) + "\n".join(lines) + "\n}\n"
    )
    return packed.of_plan(context.spec, found, VECTORS), code


def _whole(context: GpuContext, found: Plan, i: str, group: str) -> list[str]:
    """What is done for a group of iterations, all of the space: loads, code, stores."""
    cells, lane = context.device.cells, context.unique.take("lane")
    loads, stores = [], []
    names = {}
    for vector in found.vectors:
        kind = f"pf_vector<{vector.dtype.cpp}, {found.lanes}>"
        load = "pf_load" if vector.stored else "pf_load_constant"
        address = _address(context, vector, i, group)
        name = names[vector.place] = context.unique.take(f"{context.names[vector.place[0]]}_lanes")
        value = f" = {load}<{found.lanes}>({address})" if vector.loaded else ""
        loads.append(f"{'' if vector.stored else 'const '}{kind} {name}{value};")
        if vector.stored:
            stores.append(f"pf_store({address}, {name});")
    near = {
        place: _beside(names[vector.place], lane, apart, found.lanes, _element(context, place))
        for place, vector, apart in found.beside
    }
    cells.update({place: f"{name}.cell[{lane}]" for place, name in names.items()} | near)
    body = context.body(1)
    cells.clear()
    return [
        *loads,
        "#pragma unroll",
        f"for (int {lane} = 0; {lane} < {found.lanes}; ++{lane}) {{",
        f"    const int64_t {i} = {group} + {lane};",
        f"    (void){i};",
        *body,
        "}",
        *stores,
    ]


def _element(context: GpuContext, place: Place) -> str:
    return context.device.element(nodes.Load(*place))


def _beside(vector: str, lane: str, apart: int, lanes: int, element: str) -> str:
    """An element some places farther than a lane's, in the vector or not: known when unrolled."""
    at = f"{lane} {'+' if apart >= 0 else '-'} {abs(apart)}"
    inside = f"{at} < {lanes}" if apart >= 0 else f"{at} >= 0"
    return f"({inside} ? {vector}.cell[{at}] : {element})"


def _address(context: GpuContext, vector: Vector, i: str, group: str) -> str:
    """The address of the element of the first iteration of a group."""
    names = context.names
    (index,) = (sym for sym in context.workunit.indices if names[sym] == i)
    names[index] = group
    text = _element(context, vector.place)
    names[index] = i
    return f"&{text}"
