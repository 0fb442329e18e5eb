"""Data classes are those of the standard library, compiled when they are used."""

from __future__ import annotations

import ast
import copy
import dataclasses
import threading
from dataclasses import FrozenInstanceError, field, fields, replace
from pathlib import Path
from typing import Any

import pytest

from pyfuser.support.records import dataclass

PACKAGE = Path(__file__).parents[1] / "pyfuser"


def both(**options: bool) -> list[Any]:
    """One class, made by this decorator and by the standard one."""

    def made(decorate: Any) -> Any:
        @decorate(**options)
        class Point:
            """A point."""

            x: int
            y: float = 2.0
            names: list[str] = field(default_factory=list, compare=False)
            note: str = field(default="", compare=False, repr=False)

        return Point

    return [made(dataclass), made(dataclasses.dataclass)]


def outcome(action: Any) -> Any:
    try:
        return action()
    except (TypeError, AttributeError):
        return "refused"


USES = (
    lambda cls: repr(cls(1)).rpartition(".")[2],
    lambda cls: repr(cls(1, y=3.0, names=["a"], note="b")).rpartition(".")[2],
    lambda cls: (cls(1).x, cls(1).y, cls(1).names, cls(x=1, note="n").note),
    lambda cls: cls(1).names is cls(1).names,
    lambda cls: cls(1, names=["a"]) == cls(1, note="b"),
    lambda cls: cls(1) == cls(1, 2.5),
    lambda cls: cls(1) == (1, 2.0),
    lambda cls: len({hash(each) for each in (cls(1), cls(1, note="b"))}),
    lambda cls: cls.__hash__ is None,
    lambda cls: cls(),
    lambda cls: cls(1, 2.0, [], "", 5),
    lambda cls: cls(1, z=2),
    lambda cls: setattr(cls(1), "x", 3),
    lambda cls: delattr(cls(1), "x"),
    lambda cls: setattr(cls(1), "other", 3),
    lambda cls: cls.__match_args__,
    lambda cls: [f.name for f in fields(cls)],
    lambda cls: replace(cls(1, 5.0), x=2).y,
    lambda cls: dataclasses.astuple(cls(1)),
    lambda cls: hasattr(cls(1), "__dict__"),
    lambda cls: (cls.__doc__, cls.__name__),
)


@pytest.mark.parametrize("number", range(len(USES)))
@pytest.mark.parametrize("eq", [True, False])
@pytest.mark.parametrize("slots", [True, False])
@pytest.mark.parametrize("frozen", [True, False])
def test_as_the_standard_one(number: int, eq: bool, slots: bool, frozen: bool) -> None:
    ours, standard = both(frozen=frozen, slots=slots, eq=eq)
    for _ in range(2):  # the first call compiles
        assert outcome(lambda: USES[number](ours)) == outcome(lambda: USES[number](standard))


def test_what_a_class_has_of_its_own_stays() -> None:
    @dataclass(frozen=True)
    class Mine:
        x: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

        def __post_init__(self) -> None:
            object.__setattr__(self, "x", self.x + 1)

    assert Mine(1) == Mine(2)
    assert (hash(Mine(1)), Mine(1).x) == (7, 2)


def test_a_subclass_has_methods_of_its_own() -> None:
    @dataclass(frozen=True, slots=True)
    class First:
        x: int

    @dataclass(frozen=True, slots=True)
    class Second(First):
        y: int

    assert First(1) == First(1)
    assert Second(1, 2) != Second(1, 3)
    assert First(1) != Second(1, 2)
    assert repr(Second(1, 2)).endswith("Second(x=1, y=2)")
    with pytest.raises(FrozenInstanceError):
        Second(1, 2).y = 3  # type: ignore[misc]


def test_copies_are_equal() -> None:
    ours = both(frozen=True, slots=False)[0]
    assert copy.copy(ours(1)) == ours(1)


def test_threads_may_be_the_first_together() -> None:
    for _ in range(50):
        cls = both(frozen=True, slots=True)[0]
        found: list[Any] = []
        barrier = threading.Barrier(4)

        def use(cls: Any = cls, found: list[Any] = found, barrier: Any = barrier) -> None:
            barrier.wait()
            found.append((cls(1), hash(cls(1)), cls(1) == cls(1)))

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({each[:2] for each in found}) == 1
        assert all(each[2] for each in found)


def test_the_package_uses_no_other() -> None:
    for file in PACKAGE.rglob("*.py"):
        if file.name == "records.py":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "dataclasses":
                names = {alias.name for alias in node.names}
                assert "dataclass" not in names, f"{file}: see pyfuser.support.records"
            if isinstance(node, ast.Attribute) and node.attr == "dataclass":
                raise AssertionError(f"{file}: see pyfuser.support.records")
