"""The source of workunits with C++'s types written out, for the oracle (see `cxx`)."""

from __future__ import annotations

import ast

_KINDS = {"int": "int32", "float": "float64", "double": "float64"}  # of annotations


def typed(source: str) -> str:
    """The source where literals, indices and locals are Numbers, and locals keep their type."""
    return ast.unparse(ast.fix_missing_locations(_Typed().visit(ast.parse(source))))


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


class _Typed(ast.NodeTransformer):
    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}  # of a workunit's locals, but inferred ones
        self.parameters: set[str] = set()
        self.inferred: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.kinds, self.inferred = {}, set()
        self.parameters = {argument.arg for argument in node.args.args}
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return _call("number", node) if type(node.value) in (int, bool) else node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        reads_sum = node.id == "acc" and isinstance(node.ctx, ast.Load)
        return ast.Attribute(node, "value", ast.Load()) if reads_sum else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        nothing = ast.arguments([], [], None, [], [], None, [])
        sides = [ast.Lambda(nothing, self.visit(side)) for side in (node.body, node.orelse)]
        return _call("chosen", self.visit(node.test), *sides)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        assert isinstance(node.target, ast.Name) and node.value is not None
        if isinstance(node.annotation, ast.Subscript):  # a list, whose numbers are small
            return ast.Assign([node.target], self.visit(node.value))
        name = ast.unparse(node.annotation)
        kind = "float32" if name == "pk.float" else name.removeprefix("pk.")
        self.kinds[node.target.id] = _KINDS.get(kind, kind)
        return ast.Assign([node.target], self._held(node.target.id, self.visit(node.value)))

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        (target,) = node.targets
        value = self.visit(node.value)
        if isinstance(target, ast.Name):
            return ast.Assign([target], self._held(target.id, value))
        return ast.Assign([self.visit(target)], value)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        target = node.target
        known = self.kinds.keys() | self.inferred
        if not isinstance(target, ast.Name) or target.id not in known:
            node.target, node.value = self.visit(target), self.visit(node.value)
            return node
        operand = ast.Name(target.id, ast.Load())
        value = ast.BinOp(operand, node.op, self.visit(node.value))
        return ast.Assign([target], self._held(target.id, value))

    def visit_If(self, node: ast.If) -> ast.AST:
        node.test = self.visit(node.test)
        before = set(self.inferred)
        node.body = [self.visit(statement) for statement in node.body]
        then, self.inferred = self.inferred, before  # the other branch may begin the same name
        node.orelse = [self.visit(statement) for statement in node.orelse]
        self.inferred |= then
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        assert isinstance(node.target, ast.Name)
        self.kinds[node.target.id] = "int32"
        node.iter = _call("map", ast.Name("number", ast.Load()), self.visit(node.iter))
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def _held(self, name: str, value: ast.expr) -> ast.expr:
        if name not in self.kinds and name not in self.parameters:
            first = name not in self.inferred
            self.inferred.add(name)
            return value if first else _call("like", ast.Name(name, ast.Load()), value)
        kind = self.kinds.get(name, "int32")  # else it is an index
        return _call("as_kind", ast.Constant(kind), value)
