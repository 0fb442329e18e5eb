"""Loops along columns under conditions, and beside loops that stay as they are."""
# ruff: noqa: F821

from __future__ import annotations

from tests.nest.harness import body


@body("strip-mine")
def changing_guard(i, c, y, w, m):
    """What the condition asks for changes in the loop, and the other side has its own loop."""
    if y[i] > 0.0:
        for j in range(m):
            y[i] = y[i] - c[j][i] * w[j]
            c[j][i] = y[i]
    else:
        last: float = 1.0
        for j in range(m):
            last = 0.5 * last + c[j][i]
        y[i] = last + 4.0


@body("strip-mine")
def condition_in_condition(i, c, o, y, m):
    value: float = 0.0
    if y[i] > -0.5:
        top: float = y[i]
        y[i] = -y[i]
        if y[i] > 0.0 or top > 1.0:
            for j in range(m):
                value = 0.5 * value + c[j][i]
        else:
            value = top
            for j in range(1, m):
                o[j][i] = o[j - 1][i] - value
        y[i] = y[i] + value


@body("strip-mine")
def in_trips(i, c, o, w, m):
    for k in range(m):
        if o[k][i] > 0.0:
            value: float = 0.25
            for j in range(m):
                value += c[j][i] * w[k]
            o[k][i] = value


@body("strip-mine")
def one_side(i, c, y, m):
    if i % 3 == 1:
        y[i] = 2.0
    else:
        for j in range(m):
            c[j][i] = c[j][i] + y[i]


@body("strip-mine")
def kept_in_a_branch(i, c, y, m):
    if y[i] > 0.0:
        d: List[float] = [0.0, 0.0, 0.0]
        for j in range(m):
            d[j % 3] += c[j][i]
        y[i] = d[0] - d[1] * d[2]


@body("strip-mine")
def same_for_all(i, c, o, y, m):
    if m > 5:
        value: float = 0.0
        for j in range(m):
            value += c[j][i]
        y[i] = value
    else:
        for j in range(m):
            o[j][i] = y[i]


@body("strip-mine")
def divided(i, c, y, m, zero):
    """Where no iteration takes the branch nobody divides by zero."""
    if y[i] > 9.0:
        for j in range(m // zero):
            y[i] = y[i] + c[j][i]


@body("strip-mine")
def summed_sometimes(i, acc, c, o, y, w, m):
    if y[i] > 0.0:
        value: float = 0.0
        for j in range(m):
            value += c[j][i]
        acc += value
    for j in range(m):
        o[j][i] = c[j][i] * w[j]


@body("strip-mine")
def sum_of_branches(i, acc, c, y, m):
    value: float = 0.0
    if y[i] > 0.0:
        for j in range(m):
            value += c[j][i]
    else:
        for j in range(m):
            value -= c[j][i]
    acc += value


@body("strip-mine", trips=1)
def beside_a_while(i, c, o, y, m):
    value: float = 0.0
    k: int = 0
    while k < m:
        value += c[k][i]
        k += 1
    for j in range(m):
        o[j][i] = c[j][i] * value
    for j in range(m):
        if c[j][i] > 1.0:
            break
        value += c[j][i]
    for j in range(i % m):
        value += c[j][i]
    y[i] = value


@body("strip-mine", trips=1)
def rows_then_columns(i, c, b, m):
    """Only what is between the two loops along one row stays as it is."""
    value: float = 0.0
    for k in range(m):
        value += b[i][k]
    for j in range(m):
        value += c[j][i]
    for k in range(m):
        b[i][k] = value
    for j in range(m):
        c[j][i] = value


@body("strip-mine", trips=1)
def begun_then_columns(i, c, y, m):
    """Only what is between the uses of an array that a strip cannot have stays as it is."""
    d: List[float] = [0.0, 1.0, 0.0]
    for j in range(m):
        d[j % 3] += c[j][i]
    y[i] = d[0] + d[1] * d[2]
    for j in range(m):
        c[j][i] = c[j][i] * y[i]


@body("strip-mine", trips=1)
def triangle_in_trips(i, c, o, w, m):
    """A loop in a trip that walks through the column on its own keeps its loop as it is."""
    for k in range(m):
        value: float = 0.0
        for j in range(i % m):
            value += c[j][i]
        o[k][i] = value
    for j in range(m):
        c[j][i] = c[j][i] * w[j]


@body("strip-mine", arrays=1)
def one_after_the_other(i, c, o, y, m):
    first: float = 0.0
    for j in range(m):
        first += c[j][i]
    y[i] = first
    second: float = 0.5
    for j in range(m):
        second = 0.5 * second - c[j][i]
    o[0][i] = second


@body("strip-mine", arrays=2)
def both_at_once(i, c, o, m):
    first: float = 0.0
    for j in range(m):
        first += c[j][i]
    second: float = 0.5
    for j in range(m):
        second = 0.5 * second - c[j][i] + first
    o[0][i] = second


@body("strip-mine", arrays=2)
def written_where_another_begins(i, c, o, y, m):
    """What one leaves there nobody reads, but it is stored all the same."""
    first: float = 0.0
    for j in range(m):
        first += c[j][i]
    second: float = 0.5 * first
    first = first + y[i]
    y[i] = first
    for j in range(m):
        second = 0.5 * second - c[j][i]
    o[0][i] = second
