"""LU: a dense matrix in place without pivots, then the solution of one system.

Source: G. Golub and C. Van Loan, "Matrix Computations", algorithm 3.2.1: step k divides a column
and subtracts an outer product, over what is left of the matrix.
"""

import numpy as np
import pykokkos as pk

SIZES = {"small": 24, "default": 400, "large": 800}


@pk.workunit
def divide(i, a, k):
    a[i][k] = a[i][k] / a[k][k]


@pk.workunit
def subtract(i, j, a, k):
    a[i][j] -= a[i][k] * a[k][j]


@pk.workunit
def eliminate(i, b, a, k):
    b[i] -= a[i][k] * b[k]


@pk.workunit
def copy_matrix(i, j, a, source):
    a[i][j] = source[i][j]


@pk.workunit
def copy_vector(i, b, source):
    b[i] = source[i]


def setup(size):
    rng = np.random.default_rng(18)
    matrix, a = (pk.View([size, size], pk.double) for _ in range(2))
    right, b = (pk.View([size], pk.double) for _ in range(2))
    matrix.data[:] = rng.uniform(-1.0, 1.0, (size, size)) + size * np.eye(size)
    right.data[:] = rng.uniform(-1.0, 1.0, size)
    return {"n": size, "matrix": matrix, "a": a, "right": right, "b": b}


def run(state):
    n, a, b = state["n"], state["a"], state["b"]
    pk.parallel_for(pk.MDRangePolicy([0, 0], [n, n]), copy_matrix, a=a, source=state["matrix"])
    pk.parallel_for(n, copy_vector, b=b, source=state["right"])
    for k in range(n - 1):
        pk.parallel_for(pk.RangePolicy(k + 1, n), divide, a=a, k=k)
        pk.parallel_for(pk.MDRangePolicy([k + 1, k + 1], [n, n]), subtract, a=a, k=k)
        pk.parallel_for(pk.RangePolicy(k + 1, n), eliminate, b=b, a=a, k=k)


def outputs(state):
    return {"a": np.array(state["a"].data), "b": np.array(state["b"].data)}


def check(state, size, runs):
    a, matrix = np.array(state["a"].data), np.array(state["matrix"].data)
    product = (np.tril(a, -1) + np.eye(size)) @ np.triu(a)
    np.testing.assert_allclose(product, matrix, atol=1e-9 * size)
