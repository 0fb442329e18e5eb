"""NumPy's generators of random numbers, which give our arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfuser.frontends.numpy import apply
from pyfuser.frontends.numpy.fallbacks import drawing


class _Class(type):
    """NumPy's own generators are instances, too: programs ask whether something is one."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.__mro__[1])


class _Method:
    """A method, made when an instance is asked for it, which keeps it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return getattr(owner.__base__, self.name)
        method = getattr(instance._numpys, self.name)  # none of `instance`: that would be a cycle
        found = instance.__dict__[self.name] = drawing(method, f"random.{self.name}")
        return found


def _methods(numpys: Any) -> dict[str, Any]:
    names = (n for n in dir(numpys) if not n.startswith("_") and callable(getattr(numpys, n)))
    return {name: _Method(name) for name in names}


def _generator(numpys: Any) -> Any:
    """One of ours that draws from the same source as one of NumPy's."""
    return Generator(numpys.bit_generator)


class Generator(np.random.Generator, metaclass=_Class):
    """As NumPy's."""

    def __init__(self, bit_generator: Any) -> None:
        super().__init__(bit_generator)
        self._numpys = np.random.Generator(bit_generator)

    def __reduce__(self) -> Any:
        return _generator, (self._numpys,)

    def spawn(self, n_children: int) -> Any:
        return [_generator(child) for child in self._numpys.spawn(n_children)]


class RandomState(np.random.RandomState, metaclass=_Class):
    """As NumPy's."""

    def __init__(self, seed: Any = None) -> None:
        numpys = seed
        if not isinstance(seed, np.random.RandomState):
            numpys = apply.call(np.random.RandomState, (seed,), {})
        super().__init__(numpys._bit_generator)
        self._numpys = numpys

    def __reduce__(self) -> Any:
        return RandomState, (self._numpys,)


def default_rng(seed: Any = None) -> Any:
    """As NumPy's."""
    if type(seed) is Generator:
        return seed
    return _generator(apply.call(np.random.default_rng, (seed,), {}))


for _ours in (Generator, RandomState):
    for _name, _method in _methods(_ours.__base__).items():
        if _name not in vars(_ours):
            setattr(_ours, _name, _method)
    _ours.__module__ = "pyfuser.numpy.random"
OURS = {"Generator": Generator, "RandomState": RandomState, "default_rng": default_rng}
default_rng.__doc__, default_rng.__wrapped__ = np.random.default_rng.__doc__, np.random.default_rng  # type: ignore[attr-defined]
