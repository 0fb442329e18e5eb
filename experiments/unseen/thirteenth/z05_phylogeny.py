# ruff: noqa: E501, PLW3301
"""The likelihood of an evolutionary tree, sampled by Metropolis: Felsenstein's pruning over sites.

Ten species, Kimura's model. A proposal changes a branch or the ratio of transitions; the host makes
the branches' matrices, likelihoods are carried along branches and meet in the nodes, where they are
scaled; the log-likelihood is read, and the host accepts or not.
"""

from dataclasses import dataclass, field
from math import exp, log

import numpy as np
import pykokkos as pk
from common import main

SIZES = {"small": 600, "default": 20_000, "large": 100_000}
TAXA = 10
# Of the inner nodes 10, 11, ..., 18 (the root).
CHILDREN = [(0, 1), (2, 3), (10, 11), (4, 5), (6, 7), (13, 14), (12, 15), (8, 9), (16, 17)]


@pk.workunit
def observe(i: int, out: pk.View2D[pk.double], letters: pk.View1D[pk.int8]):
    """A, C, G, T are 0 to 3; 4 is unknown."""
    for s in range(4):
        if letters[i] == s or letters[i] == 4:
            out[i][s] = 1.0
        else:
            out[i][s] = 0.0


@pk.workunit
def clear(i: int, x: pk.View1D[pk.double]):
    x[i] = 0.0


@pk.workunit
def carry(i: int, out: pk.View2D[pk.double], child: pk.View2D[pk.double], p: pk.View2D[pk.double]):
    for s in range(4):
        total: float = 0.0
        for t in range(4):
            total += p[s][t] * child[i][t]
        out[i][s] = total


@pk.workunit
def meet(
    i: int, s: int, out: pk.View2D[pk.double], a: pk.View2D[pk.double], b: pk.View2D[pk.double]
):
    out[i][s] = a[i][s] * b[i][s]


@pk.workunit
def greatest(i: int, top: pk.View1D[pk.double], x: pk.View2D[pk.double]):
    top[i] = max(max(x[i][0], x[i][1]), max(x[i][2], x[i][3]))


@pk.workunit
def rescale(i: int, s: int, x: pk.View2D[pk.double], top: pk.View1D[pk.double]):
    x[i][s] /= top[i]


@pk.workunit
def remember(i: int, scale: pk.View1D[pk.double], top: pk.View1D[pk.double]):
    scale[i] += pk.log(top[i])


@pk.workunit
def site_likelihood(
    i: int, site: pk.View1D[pk.double], root: pk.View2D[pk.double], scale: pk.View1D[pk.double]
):
    mean: float = 0.25 * (root[i][0] + root[i][1] + root[i][2] + root[i][3])
    site[i] = pk.log(mean) + scale[i]


@pk.workunit
def weighted(
    i: int, acc: pk.Acc[pk.double], site: pk.View1D[pk.double], weight: pk.View1D[pk.int32]
):
    acc += weight[i] * site[i]


@dataclass
class State:
    """Sequences with their counts, the proposals' random numbers; likelihoods, what was accepted."""

    n: int
    steps: int
    letters: pk.View
    weight: pk.View
    random: pk.View
    lengths: pk.View
    site: pk.View
    likelihoods: list = field(default_factory=list)
    accepted: list = field(default_factory=list)
    final: list = field(default_factory=list)


def matrix(t, kappa):
    """Kimura's probabilities after the time t: A and G, C and T are transitions."""
    b = exp(-4.0 * t / (kappa + 2.0))
    c = exp(-2.0 * t * (kappa + 1.0) / (kappa + 2.0))
    same, transition, other = 0.25 + 0.25 * b + 0.5 * c, 0.25 + 0.25 * b - 0.5 * c, 0.25 - 0.25 * b
    p = np.full((4, 4), other)
    for s in range(4):
        p[s, s], p[s, (s + 2) % 4] = same, transition
    return p


def setup(n: int) -> State:
    rng = np.random.default_rng(1305)
    letters, weight = pk.View([TAXA, n], pk.int8), pk.View([n], pk.int32)
    steps, nodes = 20 if n <= 1_000 else 6 if n <= 20_000 else 8, 2 * TAXA - 1
    random, lengths = pk.View([steps, 3], pk.double), pk.View([nodes], pk.double)
    lengths.data[:] = rng.uniform(0.05, 0.3, nodes)
    state = np.zeros((nodes, n), np.int8)
    state[-1] = rng.integers(0, 4, n)
    for node in range(nodes - 1, TAXA - 1, -1):
        for child in CHILDREN[node - TAXA]:
            p = np.cumsum(matrix(1.3 * lengths.data[child], 3.0), axis=1)[state[node]]
            state[child] = np.minimum((rng.random(n)[:, None] > p).sum(1), 3)
    letters.data[:] = np.where(rng.random((TAXA, n)) < 0.03, 4, state[:TAXA])
    weight.data[:] = rng.geometric(0.6, n)
    random.data[:] = rng.random((steps, 3))
    return State(n, steps, letters, weight, random, lengths, pk.View([n], pk.double))


def run(state: State) -> None:
    n, nodes = state.n, 2 * TAXA - 1
    entries = pk.MDRangePolicy([0, 0], [n, 4])
    clv, p = pk.View([nodes, n, 4], pk.double), pk.View([nodes, 4, 4], pk.double)
    a, b = pk.View([n, 4], pk.double), pk.View([n, 4], pk.double)
    top, scale = pk.View([n], pk.double), pk.View([n], pk.double)
    lengths, random = np.array(state.lengths.data), np.array(state.random.data)
    kappa, present = 2.0, None
    state.likelihoods, state.accepted = [], []
    for taxon in range(TAXA):
        pk.parallel_for(n, observe, out=clv[taxon, :, :], letters=state.letters[taxon, :])
    for step in range(state.steps):
        old, old_kappa = lengths.copy(), kappa
        if step % 4 == 3:
            kappa *= exp(0.5 * (random[step, 1] - 0.5))
        elif step > 0:
            lengths[int(random[step, 0] * (nodes - 1))] *= exp(1.2 * (random[step, 1] - 0.5))
        for node in range(nodes):
            p.data[node] = matrix(lengths[node], kappa)
        pk.parallel_for(n, clear, x=scale)
        for index, (left, right) in enumerate(CHILDREN):
            here = clv[TAXA + index, :, :]
            pk.parallel_for(n, carry, out=a, child=clv[left, :, :], p=p[left, :, :])
            pk.parallel_for(n, carry, out=b, child=clv[right, :, :], p=p[right, :, :])
            pk.parallel_for(entries, meet, out=here, a=a, b=b)
            pk.parallel_for(n, greatest, top=top, x=here)
            pk.parallel_for(entries, rescale, x=here, top=top)
            pk.parallel_for(n, remember, scale=scale, top=top)
        pk.parallel_for(n, site_likelihood, site=state.site, root=clv[nodes - 1, :, :], scale=scale)
        likelihood = float(pk.parallel_reduce(n, weighted, site=state.site, weight=state.weight))
        accept = present is None or log(random[step, 2]) < likelihood - present
        state.likelihoods.append(likelihood)
        state.accepted.append(int(accept))
        if accept:
            present = likelihood
        else:
            lengths, kappa = old, old_kappa
    state.final = [kappa, *lengths]


def outputs(state: State) -> dict:
    return {
        "site": np.array(state.site.data),
        "likelihoods": np.array(state.likelihoods),
        "accepted": np.array(state.accepted),
        "final": np.array(state.final),
    }


def check(state: State, n: int, runs: int = 1) -> None:
    fresh = setup(n)
    letters, weight = np.array(fresh.letters.data), np.array(fresh.weight.data)
    lengths, random = np.array(fresh.lengths.data), np.array(fresh.random.data)
    nodes, kappa, present = len(lengths), 2.0, None
    likelihoods, accepted = [], []
    tips = (letters[:, :, None] == np.arange(4)) | (letters[:, :, None] == 4)
    for step in range(fresh.steps):
        old, old_kappa = lengths.copy(), kappa
        if step % 4 == 3:
            kappa *= exp(0.5 * (random[step, 1] - 0.5))
        elif step > 0:
            lengths[int(random[step, 0] * (nodes - 1))] *= exp(1.2 * (random[step, 1] - 0.5))
        clv = list(tips.astype(float))
        for left, right in CHILDREN:
            clv.append(
                (clv[left] @ matrix(lengths[left], kappa).T)
                * (clv[right] @ matrix(lengths[right], kappa).T)
            )
        site = np.log(0.25 * clv[-1].sum(1))
        likelihoods.append(weight @ site)
        accepted.append(int(present is None or log(random[step, 2]) < likelihoods[-1] - present))
        if accepted[-1]:
            present = likelihoods[-1]
        else:
            lengths, kappa = old, old_kappa
    out = outputs(state)
    assert list(out["accepted"]) == accepted
    np.testing.assert_allclose(out["site"], site, rtol=1e-9)
    np.testing.assert_allclose(out["likelihoods"], likelihoods, rtol=1e-10)
    np.testing.assert_allclose(out["final"], [kappa, *lengths], rtol=1e-12)


if __name__ == "__main__":
    main(globals())
