"""Cronbach's alpha: how consistent the answers to the questions of a test are."""

import numpy as np

GPU = {"people": 4_000_000}  # what fills one


def make(people=200_000, questions=20):
    rng = np.random.default_rng(1)
    return (rng.normal(size=(people, 1)) + rng.normal(size=(people, questions)),)


def run(scores):
    questions = scores.shape[1]
    of_each = scores.var(axis=0, ddof=1)
    of_all = scores.sum(axis=1).var(ddof=1)
    return questions / (questions - 1) * (1 - of_each.sum() / of_all)
