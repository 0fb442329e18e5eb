"""Workunits for programs in this process and in others (`from tests.faults.workunits import *`)."""

from __future__ import annotations

import os
import sys

import numpy as np

import pyfuser
from pyfuser.frontends.embedded import pykokkos as pk

__all__ = [
    "SIZE",
    "column",
    "increment",
    "np",
    "os",
    "pk",
    "program",
    "pyfuser",
    "scaled",
    "shift",
    "spin",
    "sys",
    "total",
    "until_one",
]

SIZE = 100


@pyfuser.fuse
@pk.workunit
def increment(i, x):
    x[i] += 1


@pyfuser.fuse
@pk.workunit
def shift(i, x, y):
    y[i] += x[i + 1]


@pyfuser.fuse
@pk.workunit
def total(i, acc, x):
    acc += x[i]


@pyfuser.fuse
@pk.workunit
def scaled(i, x, a):
    x[i] += a


@pyfuser.fuse
@pk.workunit
def spin(i, x, n):
    value: float = x[i]
    for _ in range(n):
        value = value + 1.0
    x[i] = value


@pyfuser.fuse
@pk.workunit
def column(i, acc, y):
    acc += y[i, 0] + 1


def program():
    """The calls of `conftest.Program`."""
    x, y = pk.View([SIZE], pk.double), pk.View([SIZE], pk.double)
    pk.parallel_for(SIZE, increment, x=x)
    pk.parallel_for(SIZE - 1, shift, x=x, y=y)
    return x, y, pk.parallel_reduce(SIZE, total, x=x)


@pk.workunit
def until_one(i, x, step):
    t = 0.0
    while t != 1.0:
        t += step
    x[i] = t
