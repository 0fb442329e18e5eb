"""Cosines between documents and queries, each a vector of 48 weights, and the best one a document.

Source: G. Salton, A. Wong and C. Yang, "A Vector Space Model for Automatic Indexing" (1975).
"""

from math import sqrt

import numpy as np
import pykokkos as pk

SIZES = {"small": 40, "default": 3_000, "large": 20_000}
WEIGHTS, QUERIES = 48, 100


@pk.workunit
def products(q, i, cosine, document, query, d: int):
    total: float = 0.0
    for c in range(d):
        total += document[i][c] * query[q][c]
    cosine[q][i] = total


@pk.workunit
def divide(q, i, cosine, length):
    cosine[q][i] = cosine[q][i] / length[i]


@pk.workunit
def lengths(i, length, document, d: int):
    total: float = 0.0
    for c in range(d):
        total += document[i][c] * document[i][c]
    length[i] = sqrt(total)


@pk.workunit
def choose(i, best, cosine, m: int):
    most: float = cosine[0][i]
    for q in range(1, m):
        most = max(most, cosine[q][i])
    best[i] = most


def setup(size):
    rng = np.random.default_rng(61)
    document, query = pk.View([size, WEIGHTS], pk.double), pk.View([QUERIES, WEIGHTS], pk.double)
    document.data[:] = rng.random((size, WEIGHTS))
    query.data[:] = rng.random((QUERIES, WEIGHTS))
    return {"n": size, "document": document, "query": query, "best": pk.View([size], pk.double)}


def run(state):
    n = state["n"]
    cosine, length = pk.View([QUERIES, n], pk.double), pk.View([n], pk.double)
    pairs = pk.MDRangePolicy([0, 0], [QUERIES, n])
    pk.parallel_for(n, lengths, length=length, document=state["document"], d=WEIGHTS)
    pk.parallel_for(
        pairs, products, cosine=cosine, document=state["document"], query=state["query"], d=WEIGHTS
    )
    pk.parallel_for(pairs, divide, cosine=cosine, length=length)
    pk.parallel_for(n, choose, best=state["best"], cosine=cosine, m=QUERIES)


def outputs(state):
    return {"best": np.array(state["best"].data)}


def check(state, size, runs):
    document, query = np.array(state["document"].data), np.array(state["query"].data)
    expected = (document @ query.T / np.linalg.norm(document, axis=1)[:, None]).max(axis=1)
    np.testing.assert_allclose(np.array(state["best"].data), expected, rtol=1e-11)
