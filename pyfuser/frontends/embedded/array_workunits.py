"""The workunits of the functions of whole Views (`array_functions`, `linalg`): plain PyKokkos."""

# In PyKokkos the types of a workunit's parameters are those of the call's arguments.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# mypy: disable-error-code="valid-type"

from __future__ import annotations

from pyfuser.frontends.embedded.annotations import Acc
from pyfuser.frontends.embedded.data_types import double, float32
from pyfuser.frontends.embedded.decorators import workunit


@workunit
def sum_1d(i, acc, view):
    acc += view[i]


@workunit
def sum_2d(i, j, acc, view):
    acc += view[i][j]


@workunit
def sum_of_column(i, view, out):
    out[i] = 0
    for k in range(view.extent(0)):
        out[i] += view[k][i]


@workunit
def sum_of_row(i, view, out):
    out[i] = 0
    for k in range(view.extent(1)):
        out[i] += view[i][k]


@workunit
def mean_1d(i, acc, view):
    acc += view[i] / view.extent(0)


@workunit
def mean_of_column(i, view, out):
    out[i] = 0
    for k in range(view.extent(0)):
        out[i] += view[k][i] / view.extent(0)


@workunit
def mean_of_row(i, view, out):
    out[i] = 0
    for k in range(view.extent(1)):
        out[i] += view[i][k] / view.extent(1)


@workunit
def variance_1d(i, acc, view, mean):
    acc += pow(view[i] - mean, 2) / view.extent(0)


@workunit
def variance_of_column(i, view, out, mean):
    out[i] = 0
    for k in range(view.extent(0)):
        out[i] += pow(view[k][i] - mean[i], 2) / view.extent(0)


@workunit
def variance_of_row(i, view, out, mean):
    out[i] = 0
    for k in range(view.extent(1)):
        out[i] += pow(view[i][k] - mean[i], 2) / view.extent(1)


@workunit
def dot_double(i: int, acc: Acc[double], a, b):
    acc += a[i] * b[i]


@workunit
def dot_float(i: int, acc: Acc[float32], a, b):
    acc += a[i] * b[i]


@workunit
def matmul_double(i: int, acc: Acc[double], a, b):
    acc += a[i] * b[i][0]


@workunit
def matmul_float(i: int, acc: Acc[float32], a, b):
    acc += a[i] * b[i][0]


@workunit
def product_2d_2d(i, j, n, a, b, out):
    for k in range(n):
        out[i][j] += a[i][k] * b[k][j]


@workunit
def product_1d_2d(i, n, a, b, out):
    for k in range(n):
        out[i] += a[k] * b[k][i]


@workunit
def product_2d_1d(i, n, a, b, out):
    for k in range(n):
        out[i] += a[i][k] * b[k]


@workunit
def transpose(i, j, view, out):
    out[i][j] = view[j][i]


@workunit
def hstack_1d(i, n, a, b, out):
    if i < n:
        out[i] = a[i]
    else:
        out[i] = b[i - n]


@workunit
def hstack_2d(i, j, n, a, b, out):
    if j < n:
        out[i][j] = a[i][j]
    else:
        out[i][j] = b[i][j - n]


@workunit
def index(i, a, b, out):
    out[i] = a[b[i]]


@workunit
def in1d(i, a, b, out):
    out[i] = 0
    for k in range(b.extent(0)):
        if b[k] == a[i]:
            out[i] = 1
            break


@workunit
def column(i, view, column, out):
    out[i] = view[i][column]


@workunit
def ravel(i, j, step_i, step_j, view, out):
    out[i * step_i + j * step_j] = view[i][j]


@workunit
def linspace(i, start, stop, num, out):
    out[i] = ((stop - start) / (num - 1)) * i + start


@workunit
def dgemm(i, j, alpha, a, b, out):
    for k in range(a.extent(1)):
        out[i][j] += a[i][k] * b[k][j] * alpha


@workunit
def dgemm_add(i, j, beta, c, out):
    out[i][j] += c[i][j] * beta
