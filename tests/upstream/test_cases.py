"""Programs by an installed PyKokkos, hooked: they make what they make without PyFuser."""

from __future__ import annotations

import pytest

from tests.upstream import installed

NAMES = (
    "chain", "bound_before", "reads", "writes", "fills", "aliases", "dependences", "futures",
    "types", "arrays", "ours_not", "mistakes", "lifetimes",
)  # fmt: skip
MODES = (("traced", "native"), ("careful", "native"), ("traced", "pykokkos"))

pytestmark = pytest.mark.pykokkos


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", MODES, ids="-".join)
def test_a_program_makes_what_it_makes_in_plain_pykokkos(mode: tuple[str, str], name: str) -> None:
    installed.require()
    expected, found = installed.outputs("plain")[name], installed.outputs(*mode)[name]
    assert {key: value for key, value in found.items() if key[0] != "_"} == expected


@pytest.mark.parametrize("engine", ["native", "pykokkos"])
def test_what_is_recorded(engine: str) -> None:
    """Without it all of the above could be right because nothing is traced."""
    installed.require()
    found = installed.outputs("traced", engine)
    recorded = {name: found[name]["_recorded"] for name in NAMES}
    assert recorded["chain"] == 4
    assert recorded["bound_before"] == 3
    assert recorded["dependences"] == 9
    assert recorded["futures"] == 7
    assert found["chain"]["_launches"] == 1  # with two dead Views, and a sum
    if engine == "native":
        assert found["dependences"]["_launches"] < 9


def test_what_is_not_recorded_is_told() -> None:
    installed.require()
    told = "\n".join(installed.outputs("traced")["unrecorded"].values())
    assert "copy (cases.py" in told or "/cases.py" in told
    assert "elements that do not lie one after the other" in told
    assert "the execution space ExecutionSpace.Debug" in told


def test_random_programs() -> None:
    installed.require()
    found = installed.outputs("random", "native", "0", "150")
    assert found["recorded"] > 1000
    assert found["launches"] < 0.7 * found["recorded"]
