"""Bodies with bytes beside doubles."""

from __future__ import annotations

from tests.nest.harness import body


@body("split-widths", kinds="vv", kept=1)
def bytes_are_read(i, byte, x, z):
    t: float = byte[i]
    a: float = x[i] * 0.5 + t
    b: float = a * x[i] - 0.25 * t
    c: float = b * a + 0.125 * b
    z[i] = c * (a - b) * (b + 0.5) + a * b * 0.75


@body("split-widths", kinds="vv", kept=1)
def bytes_are_written(i, x, y, mark):
    a: float = x[i] * 0.5 + y[i]
    b: float = a * x[i] - 0.25 * y[i]
    c: float = b * a + 0.125 * b
    mark[i] = int(abs(c * (a - b) * (b + 0.5) + a * b * 0.75)) % 8


@body("split-widths", kinds="vvv", kept=2)
def a_condition_stores_a_byte(i, byte, x, y, z, mark):
    a: float = x[i] * 0.5 + y[i] * byte[i]
    b: float = a * x[i] - 0.25 * y[i]
    c: float = b * a + 0.125 * b
    d: float = c * (a - b) * (b + 0.5) + a * b * 0.75
    z[i] = d
    if d > 1.5:
        mark[i] = mark[i] + 1


@body("split-widths", kinds="vv")
def short_numbers(i, gap, x, z):
    a: float = x[i] * 0.5 + gap[i]
    b: float = a * x[i] - 0.25 * gap[i + 1]
    c: float = b * a + 0.125 * b
    z[i] = c * (a - b) * (b + 0.5) + a * b * 0.75 + c * c * a - b


@body("promote-sums")
def a_sum_of_what_bytes_weigh(i, acc, byte, x, y):
    a: float = x[i] * 0.5 + byte[i]
    b: float = a * x[i] - 0.25 * y[i]
    c: float = b * a + 0.125 * b
    acc += c * (a - b) * (b + 0.5) + a * b * 0.75 + c * c * a - b


@body("split-widths")
def what_was_stored_is_read(i, byte, x, z, mark):
    """The byte that is stored, not the one of before."""
    mark[i] = byte[i] + 1
    t: float = mark[i]
    a: float = x[i] * 0.5 + t
    b: float = a * x[i] - 0.25 * t
    c: float = b * a + 0.125 * b
    z[i] = c * (a - b) * (b + 0.5) + a * b * 0.75
    mark[i] = byte[i] + 2


@body("split-widths", aliased="byte mark")
def bytes_of_one_array(i, byte, x, z, mark):
    t: float = byte[i]
    a: float = x[i] * 0.5 + t
    b: float = a * x[i] - 0.25 * t
    c: float = b * a + 0.125 * b
    z[i] = c * (a - b) * (b + 0.5) + a * b * 0.75
    mark[i] = int(t) % 7


@body("distribute split-widths")
def what_arrives_is_changed(i, x, z, mark):
    """A cheap local of a value that comes from another loop, and is another one later."""
    s: float = x[i]
    while s < 2.5:
        s = s * 1.5
    u: float = s * 0.5
    s = x[i] + 1.0
    mark[i] = int(s) % 8
    w: float = mark[i]
    a: float = x[i] * 0.5 + w
    b: float = a * s - 0.25 * u
    c: float = b * a + 0.125 * b
    z[i] = c * (a - b) * (b + 0.5) + a * b * 0.75 + u * w * c - u


@body()
def little_to_do(i, byte, x, z, mark):
    """As long in one loop."""
    z[i] = 0.5 * byte[i] + x[i]
    mark[i] = byte[i] + 1


@body()
def numbers_half_as_wide(i, hit, x, z):
    a: float = x[i] * 0.5 + hit[i]
    b: float = a * x[i] - 0.25 * hit[i]
    c: float = b * a + 0.125 * b
    z[i] = c * (a - b) * (b + 0.5) + a * b * 0.75


@body("split-widths", kinds="vvv")
def a_byte_is_loaded_under_a_condition(i, byte, x, z):
    """It may lie beyond the array: the condition stays with it."""
    a: float = x[i] * 0.5
    b: float = a * x[i] - 0.25
    c: float = b * a + 0.125 * b
    d: float = c * (a - b) * (b + 0.5) + a * b * 0.75
    if a < 0.0:
        d = d + byte[i + 1]
    z[i] = d


@body()
def a_byte_is_a_subscript(i, byte, w, x, z):
    """Of a few weights; subscripts make no vectors long."""
    a: float = x[i] * 0.5 + w[i % 8]
    b: float = a * x[i] - 0.25
    c: float = b * a + 0.125 * b
    z[i] = c * (a - b) * (b + 0.5) + a * b * 0.75
