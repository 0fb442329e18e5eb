"""What a compiler does to floating-point values in spite of its flags."""

from __future__ import annotations

from collections import Counter

from pyfuser.ir import nodes
from pyfuser.ir.nodes import Body, Sym
from pyfuser.ir.visit import all_expressions, statements


def may_contract(body: Body) -> bool:
    """Whether g++ could contract products with sums although -ffp-contract=off forbids it.

    From version 12 on its vectoriser makes one fused instruction of a * b - c and d * e + f where
    they fill neighbouring lanes. That takes a product, a sum and a difference, and neighbouring
    stores in one iteration: two of them to one array, both parts of a complex number, or a loop
    that is unrolled.
    """
    signs = {e.op for e in all_expressions(body) if isinstance(e, nodes.Binary) and _floats(e)}
    stores: Counter[Sym] = Counter()
    loops = False
    for stmt in statements(body):
        if isinstance(stmt, nodes.Store):
            stores[stmt.view] += 1 + stmt.view.dtype.is_complex
        elif isinstance(stmt, nodes.Update):
            signs.add(stmt.op)
            stores[stmt.target] += 1
        elif isinstance(stmt, (nodes.For, nodes.While, nodes.DeclareArray)):
            loops = True
    return {"*", "+", "-"} <= signs and (loops or any(n > 1 for n in stores.values()))


def _floats(e: nodes.Binary) -> bool:
    return not e.dtype.is_integer
