"""Monthly report on a transit smart-card table: revenue by month and product,
station ranking, weekday profiles, transfer gaps per card, fare outliers."""

import numpy as np

SIZES = {"small": 5000, "default": 110000, "large": 1100000}

PRODUCTS = ["adult", "student", "senior", "child", "staff"]
N_STATIONS = 120
DAY0 = (np.datetime64("2022-01-01") - np.datetime64("1970-01-01")).astype(int)
N_DAYS = 730


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    pop = rng.pareto(1.3, N_STATIONS) + 0.2
    pop /= pop.sum()
    product = rng.choice(len(PRODUCTS), size=n, p=[0.55, 0.2, 0.12, 0.1, 0.03]).astype(np.int8)
    peak = rng.random(n) < 0.45
    minute = np.where(peak, rng.normal(8.2 * 60, 45, n), rng.normal(15 * 60, 200, n))
    minute = np.clip(minute, 300, 1439).astype(np.int16)
    zones = rng.integers(1, 6, size=n).astype(np.int8)
    rate = np.array([1.0, 0.6, 0.5, 0.4, 0.0])
    fare = (1.2 + 0.8 * zones) * rate[product] + rng.normal(0, 0.05, n) * (rate[product] > 0)
    fare[rng.random(n) < 0.002] *= 10.0  # keying errors
    fare[rng.random(n) < 0.01] = np.nan  # reader failures
    return {
        "card": rng.integers(0, max(n // 12, 1), size=n).astype(np.int32),
        "station": rng.choice(N_STATIONS, size=n, p=pop).astype(np.int16),
        "product": product,
        "day": (DAY0 + rng.integers(0, N_DAYS, size=n)).astype(np.int32),
        "minute": minute,
        "zones": zones,
        "fare": fare,
    }


def month_index(day):
    d = np.arange(DAY0, DAY0 + N_DAYS).astype("datetime64[D]")
    m = d.astype("datetime64[M]").astype(int)
    return (m - m[0])[day - DAY0]


def rolling_mean(x, w):
    c = np.cumsum(np.insert(x, 0, 0.0))
    return (c[w:] - c[:-w]) / w


def group_mean_std(key, x, k):
    cnt = np.bincount(key, minlength=k)
    safe = np.maximum(cnt, 1)
    mean = np.bincount(key, weights=x, minlength=k) / safe
    dev = x - mean[key]
    var = np.bincount(key, weights=dev**2, minlength=k) / np.maximum(cnt - 1, 1)
    return cnt, mean, np.sqrt(var)


def run(state):
    fare_raw = state["fare"]
    ok = ~np.isnan(fare_raw)
    card, station, product, day = (state[k][ok] for k in ("card", "station", "product", "day"))
    minute, zones, fare = state["minute"][ok], state["zones"][ok], fare_raw[ok]

    # outliers: z score inside each product x zone cell
    cell = product.astype(int) * 6 + zones
    cnt, mean, std = group_mean_std(cell, fare, len(PRODUCTS) * 6)
    z = (fare - mean[cell]) / np.where(std > 0, std, 1.0)[cell]
    bad = np.abs(z) > 4.0
    fare = np.where(bad, mean[cell], fare)

    # revenue cube
    month = month_index(day)
    revenue = np.zeros((24, len(PRODUCTS)))
    np.add.at(revenue, (month, product), fare)
    share = revenue / revenue.sum(axis=1, keepdims=True)
    growth = revenue[12:].sum(axis=0) / np.maximum(revenue[:12].sum(axis=0), 1e-9) - 1.0

    # daily series with weekday effect removed (1970-01-01 was a Thursday)
    daily = np.bincount(day - DAY0, minlength=N_DAYS).astype(float)
    wd = (np.arange(DAY0, DAY0 + N_DAYS) + 3) % 7
    effect = np.array([daily[wd == k].mean() for k in range(7)]) / daily.mean()
    trend = rolling_mean(daily / effect[wd], 28)

    # hour profile by weekday / weekend
    weekend = (day + 3) % 7 >= 5
    hour = minute // 60
    profile = np.zeros((2, 24))
    profile[0] = np.bincount(hour[~weekend], minlength=24)
    profile[1] = np.bincount(hour[weekend], minlength=24)
    profile /= profile.sum(axis=1, keepdims=True)

    # gap between consecutive trips of a card
    stamp = day.astype(np.int64) * 1440 + minute
    order = np.lexsort((stamp, card))
    c, s, st = card[order], stamp[order], station[order]
    same = c[1:] == c[:-1]
    gap = np.diff(s)[same]
    transfer = same & (np.diff(s) < 90) & (st[1:] != st[:-1])
    first = np.flatnonzero(np.concatenate(([True], ~same)))
    spend = np.add.reduceat(fare[order], first)
    trips = np.diff(np.append(first, c.size))

    ids, counts = np.unique(station, return_counts=True)
    rank = np.argsort(-counts, kind="stable")[:10]
    return {
        "n_bad": bad.sum(),
        "revenue": revenue,
        "share": share,
        "growth": growth,
        "weekday_effect": effect,
        "trend": trend,
        "profile": profile,
        "gap_quantiles": np.percentile(gap, [5, 25, 50, 75, 95]),
        "transfer_rate": transfer.mean(),
        "spend_corr": np.corrcoef(trips, spend)[0, 1],
        "top_stations": np.stack([ids[rank], counts[rank]], axis=1),
    }


def check(result):
    return list(result.values())
