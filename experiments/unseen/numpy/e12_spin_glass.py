"""Edwards-Anderson +-J spin glass on a 2-D lattice, int8 spins, several temperatures.

Checkerboard Metropolis sweeps of two replicas per temperature; acceptance by
table lookup.  Energy, overlap q and the spin-glass correlation along a row.
"""

import numpy as np

SIZES = {"small": 12, "default": 200, "large": 760}
TEMPS = np.array([0.6, 0.9, 1.3, 2.0])
SWEEPS = 2


class SpinGlass:
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.seed = seed
        self.n = n
        self.Jx = rng.choice(np.array([-1, 1], dtype=np.int8), size=(n, n))  # bond to the right
        self.Jy = rng.choice(np.array([-1, 1], dtype=np.int8), size=(n, n))  # bond below
        self.start = rng.choice(np.array([-1, 1], dtype=np.int8), size=(2, len(TEMPS), n, n))
        ij = np.add.outer(np.arange(n), np.arange(n)) % 2
        self.colors = [ij == 0, ij == 1]
        # dE = 2 s h with s h in {-4, -2, 0, 2, 4}; index (s h + 4) // 2
        dE = 2.0 * np.arange(-4, 5, 2)
        self.table = np.minimum(1.0, np.exp(-dE / TEMPS[:, None])).astype(np.float32)

    def field(self, s):
        h = self.Jx * np.roll(s, -1, axis=-1)
        h += np.roll(self.Jx * s, 1, axis=-1)
        h += self.Jy * np.roll(s, -1, axis=-2)
        h += np.roll(self.Jy * s, 1, axis=-2)
        return h

    def energy(self, s):
        bonds = self.Jx * s * np.roll(s, -1, axis=-1) + self.Jy * s * np.roll(s, -1, axis=-2)
        return -bonds.sum(axis=(-1, -2), dtype=np.int64)

    def sweep(self, s, rng):
        t = np.arange(len(TEMPS))[None, :, None, None]
        flipped = 0
        for mask in self.colors:
            idx = (s * self.field(s) + 4) // 2
            prob = self.table[t, idx]
            flip = (rng.random(s.shape, dtype=np.float32) < prob) & mask
            s[flip] *= -1
            flipped += flip.sum(axis=(-1, -2))
        return flipped


def make(n, seed=1):
    return SpinGlass(n, seed)


def run(state):
    rng = np.random.default_rng(state.seed + 1000)
    s = state.start.copy()
    trace, accept = [], np.zeros((2, len(TEMPS)), dtype=np.int64)
    for k in range(SWEEPS):
        accept += state.sweep(s, rng)
        trace.append(state.energy(s) / state.n**2)
    overlap = s[0].astype(np.int32) * s[1]
    q = overlap.mean(axis=(1, 2))
    # spin-glass correlation <q(x) q(x+r)> through the row FFT
    spec = np.fft.rfft(overlap, axis=-1)
    corr = np.fft.irfft(np.abs(spec) ** 2, n=state.n, axis=-1).mean(axis=1) / state.n
    frustrated = (
        state.Jx * state.Jy * np.roll(state.Jx, -1, axis=0) * np.roll(state.Jy, -1, axis=1)
    ) < 0
    return {
        "spins": s,
        "energy": np.array(trace),
        "q": q,
        "corr": corr[:, : state.n // 2],
        "accept": accept / (SWEEPS * state.n**2),
        "frustration": frustrated.mean(),
    }


def check(result):
    return [result[k] for k in ("spins", "energy", "q", "corr", "accept", "frustration")]
