"""Retail: order records as a structured array, cleaned with masks and summed per customer, item and month."""

import numpy as np

SIZES = {"small": 300, "default": 50_000, "large": 1_000_000}
ORDER = np.dtype(
    [
        ("customer", "i4"),
        ("item", "i2"),
        ("day", "i4"),
        ("qty", "u1"),
        ("price", "f4"),
        ("returned", "?"),
    ]
)
MONTH_START = np.cumsum([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30])


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    rec = np.zeros(n, dtype=ORDER)
    rec["customer"] = (rng.pareto(1.5, n) * n / 40).astype(np.int64) % max(n // 10, 5)
    rec["item"] = rng.integers(0, 50, n)
    rec["day"] = rng.integers(0, 365, n)
    rec["qty"] = rng.poisson(2.0, n).clip(0, 255)
    rec["price"] = rng.lognormal(2.0, 0.6, n)
    rec["returned"] = rng.random(n) < 0.04
    return {"orders": rec, "n_items": 50, "n_customers": max(n // 10, 5)}


def share_of_top(x, fraction):
    k = max(1, int(len(x) * fraction))
    top = np.partition(x, len(x) - k)[-k:]
    return top.sum() / x.sum()


def run(s):
    orders = s["orders"]
    ok = (orders["qty"] > 0) & (orders["price"] < 60.0)
    good = orders[ok]
    sign = np.where(good["returned"], -1.0, 1.0)
    value = good["qty"] * good["price"] * sign
    month = np.searchsorted(MONTH_START, good["day"], side="right") - 1

    table = np.zeros((12, s["n_items"]))
    np.add.at(table, (month, good["item"]), value)
    best_item = table.argmax(axis=1)
    growth = np.diff(table.sum(axis=1)) / table.sum(axis=1)[:-1]

    who, inverse, n_orders = np.unique(good["customer"], return_inverse=True, return_counts=True)
    spent = np.bincount(inverse, weights=value)
    last_day = np.full(len(who), -1, dtype=np.int32)
    np.maximum.at(last_day, inverse, good["day"])
    recency = 364 - last_day

    # recency / frequency / money classes as in every marketing book
    rfm = np.select(
        [(recency < 30) & (n_orders >= 12), (recency < 90) & (n_orders >= 4), recency > 250],
        [3, 2, 0],
        default=1,
    )
    per_class = np.bincount(rfm, weights=spent, minlength=4)
    top = np.argsort(-spent, kind="stable")[:10]

    refunds = float(-value[good["returned"]].sum())
    return (
        table,
        best_item,
        growth,
        per_class,
        who[top],
        spent[top],
        share_of_top(spent, 0.2),
        refunds,
    )


def check(result):
    table, best, growth, per_class, who, spent, share, refunds = result
    return [
        table,
        best.astype(float),
        growth,
        per_class,
        who.astype(float),
        spent,
        float(share),
        refunds,
    ]
