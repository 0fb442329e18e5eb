"""Operations research: genetic algorithm for a two-constraint knapsack; boolean genomes, fancy indexing."""

import numpy as np

SIZES = {"small": 60, "default": 3000, "large": 50_000}  # population
ITEMS = 24


class Problem:
    def __init__(self, rng):
        self.value = rng.integers(10, 100, ITEMS)
        self.cost = rng.integers(5, 60, (ITEMS, 2))
        self.capacity = self.cost.sum(axis=0) * 0.4

    def fitness(self, pop):
        worth = pop @ self.value
        load = pop.astype(np.int64) @ self.cost
        excess = np.maximum(load - self.capacity, 0).sum(axis=1)
        return worth - 4.0 * excess


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    return {"problem": Problem(rng), "pop": rng.random((n, ITEMS)) < 0.4, "rng": rng}


def tournament(fit, rng, size=3):
    rival = rng.integers(0, len(fit), (len(fit), size))
    winner = fit[rival].argmax(axis=1)
    return rival[np.arange(len(fit)), winner]


def crossover(a, b, rng):
    cut = rng.integers(1, ITEMS, (len(a), 2))
    cut.sort(axis=1)
    col = np.arange(ITEMS)
    middle = (col >= cut[:, :1]) & (col < cut[:, 1:])
    return np.where(middle, b, a)


def run(s):
    prob, pop, rng = s["problem"], s["pop"], s["rng"]
    history = []
    for generation in range(2):
        fit = prob.fitness(pop)
        elite = np.argpartition(fit, -4)[-4:]
        elite = elite[np.argsort(fit[elite])]
        history.append((float(fit.max()), float(fit.mean()), float(fit.std())))

        mothers = pop[tournament(fit, rng)]
        fathers = pop[tournament(fit, rng)]
        child = crossover(mothers, fathers, rng)
        child ^= rng.random(child.shape) < 1.5 / ITEMS
        same = (child == mothers).all(axis=1)
        child[same, rng.integers(0, ITEMS, int(same.sum()))] ^= True
        child[:4] = pop[elite]
        pop = child
    s["pop"] = pop
    fit = prob.fitness(pop)
    freq = pop.mean(axis=0)
    entropy = -(freq * np.log2(freq + 1e-12) + (1 - freq) * np.log2(1 - freq + 1e-12))
    feasible = (pop.astype(int) @ prob.cost <= prob.capacity).all(axis=1)
    return np.array(history), pop[fit.argmax()], freq, entropy.sum(), feasible.mean()


def check(result):
    history, best, freq, entropy, feasible = result
    return [history, best.astype(float), freq, float(entropy), float(feasible)]
