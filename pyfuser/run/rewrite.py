"""Rewrites a module so that it runs what is pending before it touches an array.

Before each statement that may touch an array (see `rules` and `checks`) stands, on the same line,

    if __pyfuser_tracer__.raw: __pyfuser_before__(site, its local variables)

and so for the condition of each `while` and each step of a `for`. A call that a statement makes
last, `f(x)` or `y = f(x)` or `return f(x)`, becomes `__pyfuser_top__(f)(x)` if it may launch
something, and may leave that pending; all other calls in it run what they launch. A function that
makes such calls runs what is pending in a `finally` (see `watched`), and so does what else code
that is not rewritten may follow: the body of a `with`, the handler of an error. What is not
rewritten is not wrong: launches it makes on NumPy arrays run at once. Left alone are workunits,
comprehensions, class bodies, and modules that hand code objects to compilers.
"""

from __future__ import annotations

import ast
import warnings
from copy import copy
from dataclasses import replace
from types import CodeType
from typing import Any, TypeVar

from pyfuser.run import kept
from pyfuser.run.checks import Checked, Variable, check_of, launches_last, touches_nothing
from pyfuser.run.guards import SITES, Site, number_of
from pyfuser.run.launchers import Launchers, is_accessor
from pyfuser.run.lending import Lending
from pyfuser.run.rules import UNKNOWN, When, rule_of
from pyfuser.run.scopes import Function, Scope, names_bound, nodes_below
from pyfuser.run.values import targets_of
from pyfuser.run.watched import OUTER, Place, register
from pyfuser.support import syntax

#: Decorators below which the code is PyKokkos' language, not the host's.
_KERNELS = frozenset({"workunit", "function", "classtype", "fuse"})
#: Packages that read the code of functions, and would meet our additions.
_CODE_READERS = frozenset({"numba", "cloudpickle", "dill", "joblib", "dask", "ray"})
#: Parts of torch that do; the rest of it does not.
_TORCH_READERS = frozenset(
    {"compile", "jit", "fx", "export", "onnx", "script", "_dynamo", "package"}
)

_ITEM = "__pyfuser_item__"

Node = TypeVar("Node", bound=ast.AST)


def rewritten(source: bytes | str, file: str, keep: bool = False) -> CodeType:
    """The code of a module with what watches over pending calls; plain where that cannot be.

    keep: on disk, and use what is kept there. Raises SyntaxError and ValueError, as `compile` does.
    """
    key = kept.key_of(source, file)
    module = int(key[:32], 16)
    found = kept.load(key) if keep else None
    if found is not None:
        SITES.add(module, lambda: _sites(source, file, module))
    else:
        plain = compile(source, file, "exec", dont_inherit=True)
        try:
            made = _made(source, file, module)
            if made is None:
                return plain
            rewriter, tree = made
            code = compile(tree, file, "exec", dont_inherit=True)
        except RecursionError:
            return plain
        SITES.add(module, lambda: rewriter.sites)
        found = kept.Kept(plain, code, rewriter.functions)
        if keep:
            kept.save(key, found)
    register(found.code, found.plain, found.functions)
    return found.code


def _made(source: bytes | str, file: str, module: int) -> tuple[_Rewriter, ast.Module] | None:
    """A module's rewritten tree, with what rewrote it; None if it must be left as it is."""
    tree = syntax.module(source, file)
    parts = list(nodes_below(tree))
    if _read_by_compilers(parts):
        return None
    rewriter = _Rewriter(file, module, parts)
    rewriter.module(tree)
    return rewriter, tree


def _sites(source: bytes | str, file: str, module: int) -> list[Site]:
    """The sites of a module whose code was kept."""
    with warnings.catch_warnings():  # the text was compiled before
        warnings.simplefilter("ignore")
        made = _made(source, file, module)
    assert made is not None
    return made[0].sites


def _read_by_compilers(parts: list[ast.AST]) -> bool:
    """Whether a module uses what would meet our additions in the code of functions."""
    names: set[str] = set()
    used: set[str] = set()
    for node in parts:
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
            used.update(part for alias in node.names for part in alias.name.split(".")[1:])
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
            used.update(node.module.split(".")[1:], (alias.name for alias in node.names))
        elif isinstance(node, ast.Attribute):
            used.add(node.attr)
    readers = "torch" in names and not used.isdisjoint(_TORCH_READERS)
    return readers or not names.isdisjoint(_CODE_READERS)


class _Rewriter:
    """Rewrites the statements of one module.

    functions: name and first line of those that it did, and whether they are accessors. sites: the
    places where code may have to wait.
    """

    def __init__(self, file: str, module: int, parts: list[ast.AST]) -> None:
        self.file = file
        self.sites: list[Site] = []
        self._module = module
        self.functions: dict[Place, bool] = {}
        self._launchers = Launchers(parts)
        self._lending = Lending(parts)
        self._calls = 0  # rewritten so far: so one sees whether a block has any
        self._lambdas = _Lambdas(self, any(isinstance(part, ast.Lambda) for part in parts))

    def module(self, tree: ast.Module) -> None:
        tree.body = self._body(tree.body, Scope())

    def _body(self, body: list[ast.stmt], scope: Scope) -> list[ast.stmt]:
        """The body of a module or function: it leaves nothing pending to whom it returns."""
        before = self._calls
        rest = self._block(body, scope)
        if self._calls == before:
            return rest
        first = 0
        while first < len(rest) and _must_be_first(rest[first]):
            first += 1
        if first == len(rest):
            return rest
        return [*rest[:first], self._at_the_end(rest[first:], "the end of a function", OUTER)]

    def _at_the_end(self, body: list[ast.stmt], text: str, *mark: str) -> ast.stmt:
        """A block after which nothing is pending, however it ends."""
        last = body[-1]
        name = "__pyfuser_leave__" if mark else "__pyfuser_finish__"
        guard = ast.If(_raw(), [ast.Expr(self._call(name, last, text, *mark))], [])
        return _at(body[0], ast.Try(body, [], [], [_at(last, guard)]))

    def _block(self, body: list[ast.stmt], scope: Scope) -> list[ast.stmt]:
        rest: list[ast.stmt] = []
        for statement in body:
            following = scope.after(statement)
            rest += self._statement(statement, scope)
            scope = following
        return rest

    def _statement(self, node: ast.stmt, scope: Scope) -> list[ast.stmt]:
        """A statement and, if it needs one, its guard."""
        rule = rule_of(node)
        if rule is UNKNOWN:
            return [self._guard(node, scope), node]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return self._function(node, scope)
        if isinstance(node, ast.ClassDef):
            return self._class(node, scope)
        if isinstance(node, ast.While):
            test = self._guard_expression(node, scope)
            self._inside(node, scope)
            node.test = _at(
                node.test, ast.BoolOp(ast.Or(), [test, self._lending.expression(node.test)])
            )
            return [node]
        if touches_nothing(node):
            return [node]
        if isinstance(node, ast.For) and isinstance(node.target, ast.Attribute):
            scope = _through_a_name(node, scope)
        guard = [] if rule.before is When.INSIDE else [self._guard(node, scope)]
        if self._inside(node, scope) and isinstance(node, (ast.Assign, ast.AnnAssign)):
            guard.append(_old_values(node, scope))
        return [*guard, self._lending.statement(node)]

    def _inside(self, node: ast.stmt, scope: Scope) -> bool:
        """Rewrite what stands below a statement: blocks, lambdas, and its last call.

        Returns whether that call may leave calls pending.
        """
        call = launches_last(node, scope)
        before = self._calls
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(node, name, self._lambdas.visit(value))
            elif isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                inside = scope.below(node) if name == "body" else scope
                setattr(node, name, self._block(value, inside))
            elif isinstance(value, list):
                for part in value:
                    self._part(part, scope)
        launches = self._calls > before
        if call is not None and self._launchers.may_launch(call):
            self._calls += 1
            call.func = _at(call.func, ast.Call(_name("__pyfuser_top__"), [call.func], []))
            return True
        if isinstance(node, ast.For) and launches:
            targets: Any = ... if _rebinds_target(node) else targets_of(node.target)
            arguments = [ast.Constant(targets), node.iter]
            text = f"a step of a loop over {ast.unparse(node.iter)}"
            node.iter = _at(node.iter, self._call("__pyfuser_iterate__", node, text, *arguments))
        elif isinstance(node, ast.With) and launches:
            node.body = [self._at_the_end(node.body, "the end of a with block")]
        return False

    def _part(self, part: object, scope: Scope) -> None:
        """A handler of exceptions, a case of a match, an item of a `with`, or an expression."""
        if isinstance(part, ast.ExceptHandler):
            before = self._calls
            part.body = self._block(part.body, scope)
            if self._calls > before:  # the error goes, with the variables of the frames it knows
                part.body = [self._at_the_end(part.body, "the end of an except block")]
            if part.type is not None and not isinstance(part.type, ast.Name):
                guard = self._finish_expression(part, f"except {ast.unparse(part.type)}")
                part.type = _at(part.type, ast.BoolOp(ast.Or(), [guard, part.type]))
        elif isinstance(part, ast.match_case):
            part.body = self._block(part.body, scope)
            if part.guard is not None:
                self._lambdas.visit(part.guard)
        elif isinstance(part, ast.AST):
            self._lambdas.visit(part)

    def _function(self, node: Function, scope: Scope) -> list[ast.stmt]:
        guard = [] if _plain_definition(node) else [self._guard(node, scope)]
        if _is_kernel(node):
            return [*guard, node]
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        self.functions[node.name, first] = is_accessor(node)
        before = self._calls
        for decorator in node.decorator_list:
            self._lambdas.visit(decorator)
        node.body = self._body(node.body, scope.inside(node))
        self._calls = before  # its calls are made when it is called
        return [*guard, node]

    def _class(self, node: ast.ClassDef, scope: Scope) -> list[ast.stmt]:
        """Only the functions in it: its own statements run as any code that is not rewritten."""
        guard = self._guard(node, scope)
        inside = scope.inside_body(node.name)
        if not _is_kernel(node):
            for index, statement in enumerate(node.body):
                if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    node.body[index] = self._function(statement, inside)[-1]
                elif isinstance(statement, ast.ClassDef):
                    node.body[index] = self._class(statement, inside)[-1]
        return [guard, node]

    def _guard(self, node: ast.stmt, scope: Scope) -> ast.stmt:
        """What runs before a statement, if calls on arrays are pending."""
        checked = check_of(node, scope)
        number, names = self._site(node, checked)
        check: ast.stmt = ast.Expr(_call_of("__pyfuser_before__", number, names))
        if checked is not None and not all(each.certain for each in checked[1]):
            check = _tried(check, _without_some(number, checked[1]))
        return _at(node, ast.If(_raw(), [check], []))

    def _guard_expression(self, node: ast.While, scope: Scope) -> ast.expr:
        checked = check_of(node, scope)
        if checked is not None and not all(each.certain for each in checked[1]):
            checked = None
        return ast.BoolOp(
            ast.And(), [_raw(), _call_of("__pyfuser_before__", *self._site(node, checked))]
        )

    def _finish_expression(self, node: ast.AST, text: str) -> ast.expr:
        return ast.BoolOp(ast.And(), [_raw(), self._call("__pyfuser_finish__", node, text)])

    def _site(self, node: ast.stmt, checked: Checked | None) -> tuple[ast.expr, list[str]]:
        names = [each.name for each in checked[1]] if checked else []
        return self._number(Site(self.file, node.lineno, _text(node), checked)), names

    def _call(
        self, function: str, node: ast.AST, text: str, *arguments: ast.expr | str
    ) -> ast.expr:
        site = Site(self.file, getattr(node, "lineno", 0), text)
        given = [ast.Constant(a) if isinstance(a, str) else a for a in arguments]
        return ast.Call(_name(function), [self._number(site), *given], [])

    def _number(self, site: Site) -> ast.expr:
        self.sites.append(site)
        return ast.Constant(number_of(self._module, len(self.sites) - 1))


class _Lambdas(ast.NodeTransformer):
    """Lambdas flush before they do anything: a signal or a finaliser may call them."""

    def __init__(self, rewriter: _Rewriter, present: bool) -> None:
        self._rewriter = rewriter
        self._present = present  # in the module: most have none, and need no look

    def visit(self, node: ast.AST) -> Any:
        return super().visit(node) if self._present else node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        guard = self._rewriter._finish_expression(node, "a lambda runs")
        node.body = _at(node.body, ast.BoolOp(ast.Or(), [guard, node.body]))
        return node


def _without_some(number: ast.expr, variables: tuple[Variable, ...]) -> list[ast.stmt]:
    """A check where some of its variables have no value.

    If all that are loaded have one, and one is assigned to, it is that one. Else what such a
    variable may hold is looked at by itself.
    """
    doubted = [each for each in variables if not each.certain]
    targets = [each.name for each in doubted if not each.loaded]

    def again(loaded: bool) -> ast.stmt:
        given = [v.name for v in variables if v.certain or (loaded and v.loaded)]
        return ast.Expr(_call_of("__pyfuser_unbound__", number, given, ast.Constant(loaded)))

    check = again(False)
    if targets and len(targets) < len(doubted):
        check = _tried(again(True), [check])
    if len(targets) < 2 and len(targets) == len(doubted):
        return [check]
    ends = [ast.Expr(_call_of("__pyfuser_ends__", number, [name])) for name in targets]
    return [*(_tried(end, [ast.Pass()]) for end in ends), check]


def _tried(body: ast.stmt, unbound: list[ast.stmt]) -> ast.stmt:
    """A statement, and what is done where it asks for a variable that has no value."""
    handler = ast.ExceptHandler(_name("__pyfuser_unbound_error__"), None, unbound)
    return ast.Try([body], [handler], [], [])


def _old_values(node: ast.Assign | ast.AnnAssign, scope: Scope) -> ast.stmt:
    """What looks at the present values of names that a call's result replaces, if they have any."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = list(dict.fromkeys(t.id for t in targets if isinstance(t, ast.Name)))
    look = ast.Expr(ast.Call(_name("__pyfuser_old__"), [*map(_name, names)], []))
    if all(scope.certain(name) for name in names):
        return _at(node, look)
    return _at(node, _tried(look, [ast.Expr(ast.Call(_name("__pyfuser_old__"), [], []))]))


def _rebinds_target(node: ast.For) -> bool:
    """Whether a loop's body gives its targets other values, which go at the next step."""
    targets = {part.id for part in nodes_below(node.target) if isinstance(part, ast.Name)}
    return not targets.isdisjoint(names_bound(node.body)) and targets != {_ITEM}


def _through_a_name(node: ast.For, scope: Scope) -> Scope:
    """`for self.x in ...` as `for name in ...: self.x = name`, a statement that can be checked.

    The name goes at once, so that nobody sees it among the variables.
    """
    if not scope.inside_function:
        return scope
    value, gone = _name(_ITEM), ast.Delete([ast.Name(_ITEM, ast.Del())])
    assignment = ast.Assign([node.target], value)
    node.body[:0] = [_at(node.target, part) for part in (assignment, gone)]
    node.target = _at(node.target, ast.Name(_ITEM, ast.Store()))
    return replace(scope, names=scope.names | {_ITEM})


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _call_of(function: str, number: ast.expr, names: list[str], *first: ast.expr) -> ast.expr:
    return ast.Call(_name(function), [number, *first, *map(_name, names)], [])


def _raw() -> ast.expr:
    return ast.Attribute(_name("__pyfuser_tracer__"), "raw", ast.Load())


def _at(place: ast.AST, node: Node) -> Node:
    """A new node, and those below it that have no place yet, with the place of another.

    What has a place already has nothing without one below it.
    """
    pending: list[ast.AST] = [node]
    while pending:
        part = pending.pop()
        if "lineno" in part._attributes:
            if hasattr(part, "lineno"):
                continue
            ast.copy_location(part, place)
        pending += ast.iter_child_nodes(part)
    return node


def _text(node: ast.stmt) -> str:
    """The first line of a statement."""
    shown: Any = node
    if hasattr(node, "body"):  # which may be most of the program
        shown = copy(node)
        shown.body = [ast.Pass()]
        shown.orelse = []
    text = ast.unparse(shown).split("\n")[0]
    return text if len(text) <= 60 else text[:57] + "..."


def _must_be_first(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_kernel(node: Function | ast.ClassDef) -> bool:
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in _KERNELS:
            return True
    return False


def _plain_definition(node: Function) -> bool:
    """Whether defining the function runs no code: no decorators, constant defaults."""
    given = node.args
    annotations = [a.annotation for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    evaluated = [*given.defaults, *given.kw_defaults, *annotations, node.returns]
    names = (ast.Constant, ast.Name)
    return not node.decorator_list and all(e is None or isinstance(e, names) for e in evaluated)
