"""The report of `pyfuser.explain()`: built from data, shown as text, JSON and HTML."""

from pyfuser.report.build import explain, explanation, since
from pyfuser.report.explanation import Explanation

__all__ = ["Explanation", "explain", "explanation", "since"]
