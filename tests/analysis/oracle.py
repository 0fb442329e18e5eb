"""What expressions are worth, by arithmetic of C on Python's integers."""

from pyfuser.ir import nodes


def value(e, env):
    """What an expression of integers is worth; env: by Sym, of a view what all elements are."""
    match e:
        case nodes.Const():
            return e.value
        case nodes.Read():
            return env[e.sym]
        case nodes.Load():
            return env[e.view]
        case nodes.Cast():
            bits = 8 * e.dtype.size
            kept = int(value(e.operand, env)) & ((1 << bits) - 1)
            return kept - (1 << bits) if e.dtype.is_signed and kept >> (bits - 1) else kept
        case nodes.Select():
            return value(e.then if value(e.condition, env) else e.orelse, env)
        case nodes.Unary():
            operand = value(e.operand, env)
            return {"-": -operand, "~": ~operand, "!": not operand}[e.op]
        case nodes.Logical():
            left = value(e.left, env)
            return value(e.right, env) if left == (e.op == "&&") else left
    return _OPERATIONS[e.op](value(e.left, env), value(e.right, env))


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_OPERATIONS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _quotient,
    "%": lambda a, b: a - b * _quotient(a, b),
    "&": lambda a, b: a & b,
    ">>": lambda a, b: a >> b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}
