"""The mutants: every marked function of the product, and every edit of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from tests.mutants.operators import Answer, Edit, edits, substituted

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ROOT / "pyfuser"
_MARK = re.compile(r"(?:\s*|.*:  )# law(?:: (?P<refuses>not )?(?P<answer>\S.*))?")


class Law(NamedTuple):
    """A marked function: its file below pyfuser/, its qualified name, what it answers."""

    file: str
    function: str
    answer: Answer
    node: ast.FunctionDef

    @property
    def name(self) -> str:
        return f"{self.file} {self.function}"


class Mutant(NamedTuple):
    """A law with one edit; the name says which, and stays if other lines change."""

    law: Law
    edit: Edit
    name: str

    def code(self) -> CodeType:
        """The changed function, compiled as a part of its file (so that it keeps its cells)."""
        file = PRODUCT / self.law.file
        tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
        place = _where(_functions(tree), self.law.function)
        changed = substituted(self.law.node, self.edit)
        assert isinstance(changed, ast.FunctionDef)
        module = substituted(tree, Edit("", place, changed))
        assert isinstance(module, ast.Module)
        code = compile(module, str(file), "exec")
        return found_code(code, changed.name, self.law.node)


def found_code(code: CodeType, name: str, node: ast.FunctionDef) -> CodeType:
    """The code object of a function, somewhere in that of its file."""
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    pending = [code]
    while pending:
        code = pending.pop()
        if code.co_name == name and code.co_firstlineno == first:
            return code
        pending += [const for const in code.co_consts if isinstance(const, CodeType)]
    raise ValueError(f"no function {name} at line {first}")


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            if isinstance(child, ast.FunctionDef):
                yield prefix + child.name, child
            yield from _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.stmt):
            yield from _functions(child, prefix)


def _where(functions: Iterator[tuple[str, ast.FunctionDef]], name: str) -> ast.FunctionDef:
    return next(node for found, node in functions if found == name)


def laws_in(file: str, text: str) -> Iterator[Law]:
    """The marked functions of a file; ValueError for a mark that marks nothing."""
    lines = text.splitlines()
    marked = {n: m for n, line in enumerate(lines, 1) if (m := _MARK.fullmatch(line))}
    for name, node in _functions(ast.parse(text)):
        before_body = range(node.lineno - 1, node.body[0].lineno)
        mark = next((marked.pop(n) for n in before_body if n in marked), None)
        if mark is None:
            continue
        yield Law(file, name, Answer(mark["answer"] or "", bool(mark["refuses"])), node)
    if marked:
        raise ValueError(f"{file}:{min(marked)}: no def here nor on the next line")


def laws() -> list[Law]:
    """All marked functions, in the order of their files."""
    files = sorted(PRODUCT.rglob("*.py"))
    return [
        law
        for file in files
        if "# law" in (text := file.read_text(encoding="utf-8"))
        for law in laws_in(file.relative_to(PRODUCT).as_posix(), text)
    ]


def mutants_of(law: Law) -> list[Mutant]:
    """The mutants of a function; those whose text is that of another have a number in the name."""
    made: list[Mutant] = []
    seen: dict[str, int] = {}
    texts = {ast.unparse(law.node)}
    for edit in edits(law.node, law.answer):
        text = ast.unparse(substituted(law.node, edit))
        if text in texts:
            continue  # what another edit makes, too
        texts.add(text)
        name = f"{law.name}: {edit.operator}: {_short(edit.old)} -> {_short(edit.new)}"
        seen[name] = number = seen.get(name, 0) + 1
        made.append(Mutant(law, edit, f"{name} #{number}" if number > 1 else name))
    return made


def _short(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


def checklist() -> set[str]:
    """The names of mutants on the checklist."""
    text = (Path(__file__).parent / "checklist.txt").read_text(encoding="utf-8")
    return {line.strip() for line in text.splitlines()}


def sample(mutants: Sequence[Mutant], most: int, seed: int) -> list[Mutant]:
    """At most so many of them; whether one is drawn hardly depends on which others there are."""

    def drawn(mutant: Mutant) -> bytes:
        return sha256(f"{seed} {mutant.name}".encode()).digest()

    return sorted(mutants, key=drawn)[:most]
