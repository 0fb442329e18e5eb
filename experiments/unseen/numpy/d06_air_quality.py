"""Air quality: hourly NO2 of six stations with gaps; rolling means, diurnal cycle, calendar, episodes."""

import numpy as np

SIZES = {"small": 300, "default": 20_000, "large": 200_000}


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    hour = np.arange(n) + 394_464  # hours since 1970-01-01 (starts in 2015)
    cycle = 25 + 8 * np.sin(2 * np.pi * (hour % 24) / 24 - 1) - 6 * np.cos(2 * np.pi * hour / 8766)
    level = np.array([1.0, 1.3, 0.7, 0.9, 1.8, 1.1])[:, None]
    no2 = cycle * level * rng.lognormal(0, 0.35, (6, n))
    no2[rng.random((6, n)) < 0.03] = np.nan
    return {"hour": hour, "no2": no2, "limit": 45.0}


def civil(days):
    """year, month from days since 1970-01-01 (proleptic Gregorian)"""
    z = days + 719_468
    era = z // 146_097
    doe = z - era * 146_097
    yoe = (doe - doe // 1460 + doe // 36_524 - doe // 146_096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = np.where(mp < 10, mp + 3, mp - 9)
    return yoe + era * 400 + (month <= 2), month


def rolling_mean(x, w, min_count):
    valid = ~np.isnan(x)
    total = np.cumsum(np.where(valid, x, 0.0), axis=1)
    count = np.cumsum(valid, axis=1)
    total[:, w:] = total[:, w:] - total[:, :-w]
    count[:, w:] = count[:, w:] - count[:, :-w]
    out = np.full(x.shape, np.nan)
    np.divide(total, count, out=out, where=count >= min_count)
    return out


def run(s):
    x, hour = s["no2"], s["hour"]
    day, hod = np.divmod(hour, 24)
    year, month = civil(day)
    weekend = (day + 3) % 7 >= 5
    summer = (month >= 5) & (month <= 9)

    diurnal = np.stack([np.nanmean(x[:, hod == h], axis=1) for h in range(0, 24, 3)], axis=1)
    effect = np.nanmean(x[:, weekend], axis=1) / np.nanmean(x[:, ~weekend], axis=1)

    m24 = rolling_mean(x, 24, 18)
    m24[:, :17] = np.nan
    exceed = np.nan_to_num(m24) > s["limit"]
    # episodes: rising and falling edges per station
    longest = []
    for row in exceed:
        edge = np.diff(np.concatenate(([0], row.astype(np.int8), [0])))
        start, stop = np.flatnonzero(edge == 1), np.flatnonzero(edge == -1)
        longest.append(int((stop - start).max()) if start.size else 0)

    ym = (year - year[0]) * 12 + month - 1
    total = np.array([np.bincount(ym, weights=np.nan_to_num(r)) for r in x])
    seen = np.array([np.bincount(ym, weights=~np.isnan(r)) for r in x])
    monthly = total / np.maximum(seen, 1)
    return (
        diurnal,
        effect,
        np.array(longest),
        exceed.mean(axis=1),
        monthly,
        float(np.nanmax(m24)),
        int(summer.sum()),
    )


def check(result):
    return [np.asarray(r, dtype=float) for r in result]
