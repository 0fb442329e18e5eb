"""Which names of a function are its own, which surely have a value, and who changes them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pyfuser.support.records import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Scope:
    """What `rewrite` knows of the function (or module) whose statements it rewrites.

    names: the local and free variables. shared: those of them that code which a statement calls
    may change. kept: those that nothing ever deletes. bound: names that surely have a value
    before the statement at hand. defers: whether its statements may leave calls pending.
    inside_class: the innermost class around it, which changes names that begin with `__`.
    """

    names: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()
    defers: bool = True
    inside_function: bool = False
    inside_class: str = ""

    def inside(self, function: Function) -> Scope:
        """The scope of a function that is defined in this one, at its first statement."""
        parameters = frozenset(_parameters(function.args))
        bound, elsewhere, deleted = set(parameters), set[str](), set[str]()
        generates = False
        for node in own_nodes(function):
            bound.update(_bound(node))
            if isinstance(node, ast.Global):
                elsewhere.update(node.names)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
                deleted.add(node.id)
            elif isinstance(node, ast.ExceptHandler) and node.name:
                deleted.add(node.name)
            elif isinstance(node, (ast.Yield, ast.YieldFrom)):
                generates = True
        names = (self.names | bound) - elsewhere
        return Scope(
            names=names,
            shared=(self.names - bound) | _changed_inside(function),
            kept=frozenset(bound - deleted),
            bound=parameters - deleted,
            defers=not generates and isinstance(function, ast.FunctionDef),
            inside_function=True,
            inside_class=self.inside_class,
        )

    def inside_body(self, name: str) -> Scope:
        """The scope of a class's body, for the functions in it."""
        return replace(self, inside_class=name)

    def mangled(self, name: str) -> str:
        """What Python makes of a name or attribute here."""
        owner = self.inside_class.lstrip("_")
        private = owner and name.startswith("__") and not name.endswith("__")
        return f"_{owner}{name}" if private else name

    def certain(self, name: str) -> bool:
        """Whether loading a local or free variable cannot raise."""
        return name in self.bound

    def after(self, node: ast.stmt) -> Scope:
        """The scope of the statement after one."""
        return self._with(_surely_bound(node))

    def below(self, node: ast.stmt) -> Scope:
        """The scope of the first statement in a loop or `with`, or in another block."""
        if isinstance(node, (ast.For, ast.AsyncFor)):
            return self._with(_target_names([node.target]))
        return self._with(_surely_bound(node)) if isinstance(node, _WITH) else self

    def _with(self, names: frozenset[str]) -> Scope:
        more = self.kept & names
        return self if more <= self.bound else replace(self, bound=self.bound | more)


_OTHERS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_WITH = (ast.With, ast.AsyncWith)
_ENDS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def _surely_bound(node: ast.stmt) -> frozenset[str]:
    """The names that have a value wherever a statement has ended without leaving its block."""
    if isinstance(node, ast.If):
        ways = [_bound_by_block(block) for block in (node.body, node.orelse)]
        if None in ways:
            return next((way for way in ways if way is not None), frozenset())
        return frozenset.intersection(*[way for way in ways if way is not None])
    if isinstance(node, _WITH):
        return _target_names(item.optional_vars for item in node.items if item.optional_vars)
    if isinstance(node, ast.Assign):
        return _target_names(node.targets)
    if isinstance(node, ast.AugAssign) or (isinstance(node, ast.AnnAssign) and node.value):
        return _target_names([node.target])
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import)):
        return frozenset(_bound(node))
    if isinstance(node, ast.ImportFrom):
        return frozenset(_bound(node)) - {"*"}
    return frozenset()


def _bound_by_block(body: list[ast.stmt]) -> frozenset[str] | None:
    """The names that a block surely binds; None if it never ends where it stops."""
    names: frozenset[str] = frozenset()
    for statement in body:
        if isinstance(statement, _ENDS):
            return None
        names |= _surely_bound(statement)
    return names


def _target_names(targets: Iterable[ast.expr]) -> frozenset[str]:
    names: set[str] = set()
    for target in targets:
        if isinstance(target, (ast.Tuple, ast.List)):
            names |= _target_names(target.elts)
        elif isinstance(target, ast.Starred):
            names |= _target_names([target.value])
        elif isinstance(target, ast.Name):
            names.add(target.id)
    return frozenset(names)


def _changed_inside(function: Function) -> set[str]:
    """The names that functions and classes inside a function say are not theirs."""
    names: set[str] = set()
    for node in _nodes(list(function.body), ()):
        if isinstance(node, ast.Nonlocal):
            names.update(node.names)
    return names


def names_bound(body: list[ast.stmt]) -> set[str]:
    """The names that statements bind, those in functions inside them left out."""
    return {name for node in _nodes(list(body), _OTHERS) for name in _bound(node)}


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function's body, without those of functions and classes inside it."""
    return _nodes(list(function.body), _OTHERS)


def nodes_below(tree: ast.AST) -> Iterator[ast.AST]:
    """What `ast.walk` gives, sooner and in another order."""
    return _nodes([tree], ())


def _nodes(pending: list[ast.AST], closed: tuple[type[ast.AST], ...]) -> Iterator[ast.AST]:
    """Nodes and what is below them, but not below those that are `closed`."""
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, closed):
            continue
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                pending += [part for part in value if isinstance(part, ast.AST)]
            elif isinstance(value, ast.AST):
                pending.append(value)


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        yield argument.arg
    for extra in (arguments.vararg, arguments.kwarg):
        if extra is not None:
            yield extra.arg


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a node binds by itself."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield alias.asname or alias.name.split(".")[0]
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest
