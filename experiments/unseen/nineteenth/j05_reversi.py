"""Reversi on bitboards: many games at once, moves by filling in eight directions, random play.

Two words of 64 bits a game; a few plies, then mobility, corners and discs are weighed.
"""

from dataclasses import dataclass

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 1_000, "default": 100_000, "large": 1_500_000}
PLIES = 4
INNER = 0x7E7E7E7E7E7E7E7E
ALL = 0xFFFFFFFFFFFFFFFF
CORNERS = 0x8100000000000081
DIRECTIONS = [(1, INNER), (7, INNER), (8, ALL), (9, INNER)]


@pk.workunit
def copy(i: int, to: pk.View1D[pk.uint64], source: pk.View1D[pk.uint64]):
    to[i] = source[i]


@pk.workunit
def clear(i: int, board: pk.View1D[pk.uint64]):
    board[i] = 0


@pk.workunit
def moves_up(i: int, moves, own, other, inside: pk.uint64, shift: int):
    """Empty squares behind a line of the other's discs."""
    line: pk.uint64 = other[i] & inside
    filled: pk.uint64 = (own[i] << shift) & line
    for _ in range(5):
        filled |= (filled << shift) & line
    moves[i] |= (filled << shift) & ~(own[i] | other[i])


@pk.workunit
def moves_down(i: int, moves, own, other, inside: pk.uint64, shift: int):
    line: pk.uint64 = other[i] & inside
    filled: pk.uint64 = (own[i] >> shift) & line
    for _ in range(5):
        filled |= (filled >> shift) & line
    moves[i] |= (filled >> shift) & ~(own[i] | other[i])


@pk.workunit
def count(i: int, out: pk.View1D[pk.int32], board: pk.View1D[pk.uint64]):
    left: pk.uint64 = board[i]
    bits: int = 0
    while left != 0:
        left &= left - 1
        bits += 1
    out[i] = bits


@pk.workunit
def roll(i: int, dice: pk.View1D[pk.uint32]):
    """Xorshift: each game has its own numbers."""
    x: pk.uint32 = dice[i]
    x ^= x << 13
    x ^= x >> 17
    x ^= x << 5
    dice[i] = x


@pk.workunit
def choose(i: int, move, moves, number, dice):
    """One of the moves, all equally likely; none where there is none."""
    left: pk.uint64 = moves[i]
    if number[i] > 0:
        skip: int = dice[i] % number[i]
        for _ in range(skip):
            left &= left - 1
        left = left & (~left + 1)
    move[i] = left


@pk.workunit
def flips_up(i: int, flips, move, own, other, inside: pk.uint64, shift: int):
    line: pk.uint64 = other[i] & inside
    filled: pk.uint64 = (move[i] << shift) & line
    for _ in range(5):
        filled |= (filled << shift) & line
    if ((filled << shift) & own[i]) != 0:
        flips[i] |= filled


@pk.workunit
def flips_down(i: int, flips, move, own, other, inside: pk.uint64, shift: int):
    line: pk.uint64 = other[i] & inside
    filled: pk.uint64 = (move[i] >> shift) & line
    for _ in range(5):
        filled |= (filled >> shift) & line
    if ((filled >> shift) & own[i]) != 0:
        flips[i] |= filled


@pk.workunit
def play(i: int, own, other, move, flips):
    """And the other's turn: the boards change sides."""
    mine: pk.uint64 = own[i] | move[i] | flips[i]
    own[i] = other[i] & ~flips[i]
    other[i] = mine


@pk.workunit
def passed(i: int, passes: pk.View1D[pk.uint8], number: pk.View1D[pk.int32]):
    if number[i] == 0:
        passes[i] += 1


@pk.workunit
def keep(i: int, board: pk.View1D[pk.uint64], mask: pk.uint64):
    board[i] &= mask


@pk.workunit
def weigh(i: int, score, plus, minus, weight: int):
    score[i] += weight * (plus[i] - minus[i])


@dataclass
class State:
    n: int
    black: pk.View
    white: pk.View
    seeds: pk.View
    own: pk.View
    other: pk.View
    score: pk.View
    passes: pk.View


def setup(n: int) -> State:
    rng = np.random.default_rng(64)
    black, white, own, other = (pk.View([n], pk.uint64) for _ in range(4))
    seeds = pk.View([n], pk.uint32)
    bits = rng.integers(0, 2**64, (3, n), dtype=np.uint64)
    black.data[:], white.data[:] = bits[0] & bits[1], bits[1] & ~bits[0] & ~bits[2]
    seeds.data[:] = rng.integers(1, 2**32, n)
    return State(n, black, white, seeds, own, other, pk.View([n], pk.int32), pk.View([n], pk.uint8))


def run(s: State) -> None:
    n, own, other = s.n, s.own, s.other
    moves, flips, move = (pk.View([n], pk.uint64) for _ in range(3))
    dice = pk.View([n], pk.uint32)
    mine, theirs = pk.View([n], pk.int32), pk.View([n], pk.int32)

    def find_moves(moves, own, other):
        pk.parallel_for(n, clear, board=moves)
        for shift, inside in DIRECTIONS:
            pk.parallel_for(
                n, moves_up, moves=moves, own=own, other=other, inside=inside, shift=shift
            )
            pk.parallel_for(
                n, moves_down, moves=moves, own=own, other=other, inside=inside, shift=shift
            )

    pk.parallel_for(n, copy, to=own, source=s.black)
    pk.parallel_for(n, copy, to=other, source=s.white)
    dice.data[:] = s.seeds.data
    s.passes.data[:] = 0
    s.score.data[:] = 0
    for _ in range(PLIES):
        find_moves(moves, own, other)
        pk.parallel_for(n, count, out=mine, board=moves)
        pk.parallel_for(n, roll, dice=dice)
        pk.parallel_for(n, choose, move=move, moves=moves, number=mine, dice=dice)
        pk.parallel_for(n, passed, passes=s.passes, number=mine)
        pk.parallel_for(n, clear, board=flips)
        for shift, inside in DIRECTIONS:
            for work in (flips_up, flips_down):
                pk.parallel_for(
                    n,
                    work,
                    flips=flips,
                    move=move,
                    own=own,
                    other=other,
                    inside=inside,
                    shift=shift,
                )
        pk.parallel_for(n, play, own=own, other=other, move=move, flips=flips)
    # Mobility, discs, corners.
    find_moves(moves, own, other)
    find_moves(flips, other, own)
    for a, b, weight in ((moves, flips, 8), (own, other, 1)):
        pk.parallel_for(n, count, out=mine, board=a)
        pk.parallel_for(n, count, out=theirs, board=b)
        pk.parallel_for(n, weigh, score=s.score, plus=mine, minus=theirs, weight=weight)
    pk.parallel_for(n, copy, to=moves, source=own)
    pk.parallel_for(n, copy, to=flips, source=other)
    for board, number in ((moves, mine), (flips, theirs)):
        pk.parallel_for(n, keep, board=board, mask=CORNERS)
        pk.parallel_for(n, count, out=number, board=board)
    pk.parallel_for(n, weigh, score=s.score, plus=mine, minus=theirs, weight=25)


def outputs(s: State) -> dict:
    views = {"own": s.own, "other": s.other, "score": s.score, "passes": s.passes}
    return {name: np.array(view.data) for name, view in views.items()}


def check(s: State, n: int) -> None:
    """On arrays of 8 x 8 squares, by walking."""
    n = min(n, 2000)

    def squares(words):
        bits = (words[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        return bits.astype(bool).reshape(-1, 8, 8)

    def shifted(x, dy, dx):
        out = np.zeros_like(x)
        ys, yd = (slice(0, 8 - dy), slice(dy, 8)) if dy >= 0 else (slice(-dy, 8), slice(0, 8 + dy))
        xs, xd = (slice(0, 8 - dx), slice(dx, 8)) if dx >= 0 else (slice(-dx, 8), slice(0, 8 + dx))
        out[:, yd, xd] = x[:, ys, xs]
        return out

    ways = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]

    def legal(own, other):
        moves = np.zeros_like(own)
        for dy, dx in ways:
            front = shifted(own, dy, dx) & other
            for _ in range(6):
                front = shifted(front, dy, dx)
                moves |= front & ~own & ~other
                front &= other
        return moves

    own, other = (squares(np.array(v.data)[:n].astype(np.uint64)) for v in (s.black, s.white))
    dice, passes = np.array(s.seeds.data)[:n].astype(np.uint64), np.zeros(n, int)
    low = np.uint64(0xFFFFFFFF)
    for _ in range(PLIES):
        moves = legal(own, other).reshape(n, 64)
        dice ^= (dice << np.uint64(13)) & low
        dice ^= dice >> np.uint64(17)
        dice ^= (dice << np.uint64(5)) & low
        number = moves.sum(axis=1)
        passes += number == 0
        rank = np.where(number > 0, dice.astype(np.int64) % np.maximum(number, 1), -1)
        move = (moves & (moves.cumsum(axis=1) == rank[:, None] + 1)).reshape(n, 8, 8)
        flips = np.zeros_like(own)
        for dy, dx in ways:
            front, path = move, np.zeros_like(own)
            good = np.zeros(n, bool)
            for _ in range(7):
                front = shifted(front, dy, dx)
                good |= (front & own).any(axis=(1, 2))
                front = front & other
                path |= front
            flips |= path & good[:, None, None]
        own, other = other & ~flips, own | move | flips
    corner = np.ix_(range(n), [0, 7], [0, 7])
    score = 8 * (legal(own, other).sum(axis=(1, 2)) - legal(other, own).sum(axis=(1, 2)))
    score += own.sum(axis=(1, 2)) - other.sum(axis=(1, 2))
    score += 25 * (own[corner].sum(axis=(1, 2)) - other[corner].sum(axis=(1, 2)))
    np.testing.assert_array_equal(squares(np.array(s.own.data)[:n]), own)
    np.testing.assert_array_equal(squares(np.array(s.other.data)[:n]), other)
    np.testing.assert_array_equal(np.array(s.passes.data)[:n], passes)
    np.testing.assert_array_equal(np.array(s.score.data)[:n], score)


if __name__ == "__main__":
    main(globals())
