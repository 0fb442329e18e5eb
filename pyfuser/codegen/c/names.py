"""C++ names for a kernel's Syms: the user's own, made unique and legal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from pyfuser.ir.nodes import Sym

_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    class compl concept const consteval constexpr constinit const_cast continue co_await co_return
    co_yield decltype default delete do double dynamic_cast else enum explicit export extern false
    float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr
    operator or or_eq private protected public register reinterpret_cast requires return short
    signed sizeof static static_assert static_cast struct switch template this thread_local throw
    true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t
    while xor xor_eq
"""
# Macros, types and functions of <stdint.h> and <stdio.h>, and the names in every entry point.
_OTHERS = """
    slot results begin end main linux unix i386 printf stdin stdout stderr EOF NULL BUFSIZ SEEK_SET
    SEEK_CUR SEEK_END omp_get_thread_num omp_get_num_threads int8_t int16_t int32_t int64_t uint8_t
    uint16_t uint32_t uint64_t uintptr_t INT8_MIN INT16_MIN INT32_MIN INT64_MIN INT8_MAX INT16_MAX
    INT32_MAX INT64_MAX UINT8_MAX UINT16_MAX UINT32_MAX UINT64_MAX SIZE_MAX INTPTR_MAX INTPTR_MIN
    UINTPTR_MAX
"""
KEYWORDS = frozenset(_KEYWORDS.split())
_RESERVED = KEYWORDS | frozenset(_OTHERS.split())
_LEGAL = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class Names:
    """Hands out names, each only once and none of `reserved`."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = {*_RESERVED, *reserved}

    def take(self, wish: str) -> str:
        """`wish`, or `wish_2`, `wish_3`...; what C++ could not spell becomes `v`."""
        legal = _LEGAL.fullmatch(wish) and "__" not in wish
        base = wish if legal and not wish.startswith("pf_") else "v"
        name, n = base, 1
        while name in self._taken:
            n += 1
            name = f"{base}_{n}"
        self._taken.add(name)
        return name

    def take_all(self, syms: Sequence[Sym], wishes: Sequence[str]) -> dict[Sym, str]:
        """A name for each Sym; `wishes` may be empty."""
        wishes = wishes or [sym.name for sym in syms]
        return {sym: self.take(w or "v") for sym, w in zip(syms, wishes, strict=True)}


class SymNames(dict[Sym, str]):
    """Names of Syms; those of nests get theirs when they are printed first.

    literal: names of the code around the body, which such a Sym may have for itself.
    """

    def __init__(self, known: Mapping[Sym, str], unique: Names, literal: frozenset[str]) -> None:
        super().__init__(known)
        self._unique, self._literal = unique, literal

    def __missing__(self, sym: Sym) -> str:
        name = sym.name if sym.name in self._literal else self._unique.take(sym.name)
        return self.setdefault(sym, name)
