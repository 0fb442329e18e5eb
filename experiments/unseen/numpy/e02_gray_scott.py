"""Gray-Scott reaction-diffusion in float32, with preallocated work arrays.

Padded grid with ghost cells, 5-point+diagonal Laplacian through slices, and
out= arguments in the hot loop so no temporaries are created where avoidable.
"""

import numpy as np

SIZES = {"small": 64, "default": 512, "large": 1200}
STEPS = 10


class GrayScott:
    Du, Dv = 0.16, 0.08
    F, K = 0.035, 0.062
    dt = 1.0

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.n = n
        self.U = np.ones((n + 2, n + 2), dtype=np.float32)
        self.V = np.zeros((n + 2, n + 2), dtype=np.float32)
        for _ in range(12):
            r, c = rng.integers(1, n - n // 8, size=2)
            w = n // 10
            self.U[r : r + w, c : c + w] = 0.50
            self.V[r : r + w, c : c + w] = 0.25
        noise = rng.uniform(-0.01, 0.01, size=(n, n)).astype(np.float32)
        self.U[1:-1, 1:-1] += noise
        self.V[1:-1, 1:-1] += np.abs(noise)
        self.Lu = np.empty((n, n), dtype=np.float32)
        self.Lv = np.empty_like(self.Lu)
        self.uvv = np.empty_like(self.Lu)

    @staticmethod
    def wrap(a):
        a[0, :] = a[-2, :]
        a[-1, :] = a[1, :]
        a[:, 0] = a[:, -2]
        a[:, -1] = a[:, 1]

    @staticmethod
    def laplacian(a, out):
        np.add(a[:-2, 1:-1], a[2:, 1:-1], out=out)
        out += a[1:-1, :-2]
        out += a[1:-1, 2:]
        out *= 0.2
        out += 0.05 * (a[:-2, :-2] + a[:-2, 2:] + a[2:, :-2] + a[2:, 2:])
        out -= a[1:-1, 1:-1]
        return out

    def step(self):
        self.wrap(self.U)
        self.wrap(self.V)
        u = self.U[1:-1, 1:-1]
        v = self.V[1:-1, 1:-1]
        self.laplacian(self.U, self.Lu)
        self.laplacian(self.V, self.Lv)

        np.multiply(v, v, out=self.uvv)
        np.multiply(self.uvv, u, out=self.uvv)

        u += self.dt * (self.Du * self.Lu - self.uvv + self.F * (1.0 - u))
        v += self.dt * (self.Dv * self.Lv + self.uvv - (self.F + self.K) * v)


def make(n, seed=1):
    return GrayScott(n, seed)


def run(state):
    for _ in range(STEPS):
        state.step()
    u = state.U[1:-1, 1:-1]
    v = state.V[1:-1, 1:-1]
    gy, gx = np.gradient(v)
    front = np.hypot(gx, gy)
    # activator coverage and interface length proxies
    covered = np.count_nonzero(v > 0.1) / v.size
    return (
        u.copy(),
        v.copy(),
        front.mean(axis=0),
        covered,
        u.mean(dtype=np.float64),
        v.mean(dtype=np.float64),
    )


def check(result):
    u, v, front, covered, um, vm = result
    return [u, v, front, covered, um, vm]
