"""The rules of `pyfuser run`, a line for each construct of Python: what may read, where it flushes.

Everything that `rewrite` and `harmless` do follows these tables, and tests go through them. A
construct that is not here (of a Python to come) is left as it is, after a flush.
"""

from __future__ import annotations

import ast
from enum import Enum

from pyfuser.support.records import dataclass


class When(Enum):
    """When what is pending runs before a construct."""

    NEVER = "never"
    CHECKED = "unless proved harmless"
    ALWAYS = "always"
    INSIDE = "by what is inside it"


@dataclass(frozen=True)
class Rule:
    """One construct.

    reads: what of it may read or write arrays. before: when calls on arrays run before it.
    also: where else it runs them.
    """

    reads: str
    before: When
    also: str = ""


_CODE = "any code it calls"
_NOTHING = "nothing"

STATEMENTS: dict[str, Rule] = {
    "Expr": Rule("its expression", When.CHECKED),
    "Assign": Rule("its expressions, what it unpacks, what the old value's end runs", When.CHECKED),
    "AnnAssign": Rule("its expressions; outside functions its annotation", When.CHECKED),
    "AugAssign": Rule("its operator and what it assigns to", When.CHECKED),
    "Return": Rule("its expression", When.CHECKED),
    "Assert": Rule("its expressions", When.CHECKED),
    "Delete": Rule("what the end of an object runs; items and attributes", When.CHECKED),
    "If": Rule("its condition", When.CHECKED),
    "While": Rule("its condition, at each step", When.CHECKED),
    "For": Rule(
        "its iterator, and what it unpacks, at each step",
        When.CHECKED,
        "before each step and the iterator's end, unless it goes over a range, a list or the like, "
        "and what it unpacks are tuples and lists",
    ),
    "Try": Rule(
        _NOTHING,
        When.INSIDE,
        "before expressions after `except`, and at the end of each handler, which drops its error",
    ),
    "With": Rule(_CODE, When.ALWAYS, "at the end of its block"),
    "Raise": Rule(_CODE, When.ALWAYS),
    "Match": Rule("its subject and its patterns", When.ALWAYS),
    "Import": Rule(_CODE, When.ALWAYS),
    "ImportFrom": Rule(_CODE, When.ALWAYS),
    "FunctionDef": Rule(
        "decorators, defaults, annotations",
        When.CHECKED,
        "at its end, unless a statement that is rewritten called it as the last thing it does",
    ),
    "ClassDef": Rule(_CODE, When.ALWAYS, "launches of its body run at once"),
    "AsyncFunctionDef": Rule(
        "decorators, defaults, annotations", When.CHECKED, "launches inside run at once"
    ),
    "AsyncFor": Rule(_CODE, When.ALWAYS),
    "AsyncWith": Rule(_CODE, When.ALWAYS),
    "TypeAlias": Rule(_CODE, When.ALWAYS),
    "Pass": Rule(_NOTHING, When.NEVER),
    "Break": Rule(_NOTHING, When.NEVER),
    "Continue": Rule(_NOTHING, When.NEVER),
    "Global": Rule(_NOTHING, When.NEVER),
    "Nonlocal": Rule(_NOTHING, When.NEVER),
}
STATEMENTS["TryStar"] = STATEMENTS["Try"]

EXPRESSIONS: dict[str, Rule] = {
    "Constant": Rule(_NOTHING, When.NEVER),
    "Name": Rule(_NOTHING, When.CHECKED),
    "Tuple": Rule("its parts", When.CHECKED),
    "List": Rule("its parts", When.CHECKED),
    "Starred": Rule("what it unpacks", When.CHECKED),
    "Slice": Rule("its bounds", When.CHECKED),
    "Attribute": Rule("properties, `__getattr__` and the like", When.CHECKED),
    "Subscript": Rule("elements; `__getitem__`", When.CHECKED),
    "BinOp": Rule("its operands, unless numbers or strings", When.CHECKED),
    "UnaryOp": Rule("its operand, unless a number", When.CHECKED),
    "Compare": Rule("its operands, unless numbers, strings or compared by `is`", When.CHECKED),
    "BoolOp": Rule("its operands, unless numbers or strings", When.CHECKED),
    "IfExp": Rule("its condition", When.CHECKED),
    "JoinedStr": Rule("what it formats, unless numbers or strings", When.CHECKED),
    "FormattedValue": Rule("what it formats, unless a number or string", When.CHECKED),
    "Call": Rule("what it calls, unless the program's own or known", When.CHECKED),
    "Lambda": Rule(_NOTHING, When.ALWAYS, "when it is called, before it does anything"),
    "NamedExpr": Rule("its expression", When.ALWAYS),
    "Dict": Rule("its values; keys that are not constants", When.CHECKED),
    "Set": Rule("hashes of its parts", When.ALWAYS),
    "ListComp": Rule(_CODE, When.ALWAYS, "launches inside run at once"),
    "SetComp": Rule(_CODE, When.ALWAYS, "launches inside run at once"),
    "DictComp": Rule(_CODE, When.ALWAYS, "launches inside run at once"),
    "GeneratorExp": Rule(_CODE, When.ALWAYS, "launches inside run at once"),
    "Await": Rule(_CODE, When.ALWAYS, "launches inside run at once"),
    "Yield": Rule(_CODE, When.ALWAYS, "launches of a generator run at once"),
    "YieldFrom": Rule(_CODE, When.ALWAYS, "launches of a generator run at once"),
    "TemplateStr": Rule(_CODE, When.ALWAYS),
    "Interpolation": Rule(_CODE, When.ALWAYS),
}

#: Of a construct that has no rule.
UNKNOWN = Rule(_CODE, When.ALWAYS)


def rule_of(node: ast.AST) -> Rule:
    """The rule of a statement or an expression."""
    name = type(node).__name__
    return STATEMENTS.get(name) or EXPRESSIONS.get(name) or UNKNOWN


def table() -> str:
    """The rules as the tables of docs/run.md."""
    lines = []
    for title, rules in (("statement", STATEMENTS), ("expression", EXPRESSIONS)):
        lines += [f"| {title} | what of it may read | runs what is pending before it | and |"]
        lines += ["| --- | --- | --- | --- |"]
        for name, rule in rules.items():
            lines.append(f"| `{name}` | {rule.reads} | {rule.before.value} | {rule.also} |")
        lines.append("")
    return "\n".join(lines)
