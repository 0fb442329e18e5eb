"""Workunits that several files of tests call."""

from __future__ import annotations

import pykokkos as pk


@pk.workunit
def copy(i, x, y):
    y[i] = x[i]


@pk.workunit
def count(i, x):
    x[i] = i + 1.0


@pk.workunit
def count2(i, j, m):
    m[i][j] = 10.0 * i + j


@pk.workunit
def inc(i, x):
    x[i] += 1.0


@pk.workunit
def put(i, x, v):
    x[i] = v


@pk.workunit
def reverse(i, x, y, n):
    y[i] = x[n - 1 - i]


@pk.workunit
def total(i, acc, x):
    acc += x[i]
