"""`%load_ext pyfuser`: the cell magic `%%fuse`."""

from __future__ import annotations

import ast
import inspect
from argparse import ArgumentParser
from typing import Any, NoReturn

from pyfuser.frontends.modes import fusing
from pyfuser.report import Explanation, explanation, since
from pyfuser.runtime.session import SESSION
from pyfuser.support import tracebacks
from pyfuser.support.settings import SETTINGS
from pyfuser.trace.reason import CELL_ENDS


def load(shell: Any) -> None:
    """Make `%%fuse` known to an IPython shell."""

    def fuse(line: str, cell: str) -> Any:
        return _fuse(shell, line, cell)

    if not SETTINGS.debug:
        tracebacks.hide_in(shell)
    fuse.__doc__ = _parser().format_help()
    shell.register_magic_function(fuse, "cell", "fuse")


def unload(shell: Any) -> None:
    """Forget it."""
    shell.magics_manager.magics["cell"].pop("fuse", None)


class _Parser(ArgumentParser):
    """A parser that raises where others end the process."""

    def error(self, message: str) -> NoReturn:
        from IPython.core.error import UsageError  # which IPython shows in one line

        raise UsageError(f"{self.prog}: {message}; its options are -e (--explain), -s (--source)")


def _parser() -> ArgumentParser:
    parser = _Parser(
        "%%fuse",
        description="Run the cell as in `with pyfuser.fusing():`: its PyKokkos calls are recorded, "
        "and run fused at its end or when a result is read.",
        add_help=False,
    )
    parser.add_argument("-e", "--explain", action="store_true", help="then show what was fused")
    parser.add_argument("-s", "--source", action="store_true", help="and the fused kernels' text")
    return parser


def _fuse(shell: Any, line: str, cell: str) -> Any:
    """Run a cell fused; its value is that of its last line, as without the magic."""
    options = _parser().parse_args(line.split())
    before = SESSION.flushes[-1:]
    with fusing(CELL_ENDS):
        value = _run(shell, cell)
    if options.explain or options.source:
        _show(explanation(since(before), options.source))
    return value


def _run(shell: Any, cell: str) -> Any:
    text = shell.transform_cell(cell)
    # Under the name that the shell gives it, so that workunits and tracebacks find the text.
    name = shell.compile.cache(text, _number(shell), raw_code=cell)
    tree = shell.transform_ast(shell.compile.ast_parse(text, name))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(shell.compile(tree, name, "exec"), shell.user_ns)
    if last is None:
        return None
    return eval(shell.compile(ast.Expression(last.value), name, "eval"), shell.user_ns)


def _number(shell: Any) -> int:
    """The cell's number, In[...]; a shell may count on before it runs the cell."""
    numbers = getattr(shell.compile, "_filename_map", {})
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename not in numbers:
        frame = frame.f_back
    return int(shell.execution_count if frame is None else numbers[frame.f_code.co_filename])


def _show(report: Explanation) -> None:
    from IPython import display

    show: Any = display.display
    show(report)
