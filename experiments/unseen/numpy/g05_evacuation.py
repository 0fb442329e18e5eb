"""Pedestrians leaving a hall (social force model) with two doors: pairwise
repulsion, wall forces, door choice, jostling noise, and density maps."""

import numpy as np

SIZES = {"small": 16, "default": 130, "large": 460}

WIDTH, HEIGHT = 30.0, 20.0
DOORS = np.array([[WIDTH, 5.0], [WIDTH, 15.0]])
DOOR_HALF = 0.9


class Crowd:
    def __init__(self, pos, vel, v0, radius, rng):
        self.pos = pos
        self.vel = vel
        self.v0 = v0
        self.radius = radius
        self.rng = rng
        self.inside = np.ones(len(pos), dtype=bool)
        self.exit_time = np.full(len(pos), np.inf)
        self.target = np.zeros(len(pos), dtype=int)

    def choose_door(self):
        d = np.linalg.norm(self.pos[:, None, :] - DOORS[None, :, :], axis=2)
        load = np.bincount(self.target[self.inside], minlength=len(DOORS))
        cost = d + 0.03 * load
        # hysteresis: stay with the present choice unless clearly worse
        cost[np.arange(len(d)), self.target] -= 1.0
        self.target = np.argmin(cost, axis=1)

    def drive(self, tau=0.5):
        aim = DOORS[self.target] - self.pos
        aim[:, 0] += 0.5
        aim /= np.maximum(np.linalg.norm(aim, axis=1, keepdims=True), 1e-6)
        return (self.v0[:, None] * aim - self.vel) / tau

    def repulsion(self, A=4.0, B=0.3, k=60.0, reach=3.0):
        diff = self.pos[:, None, :] - self.pos[None, :, :]
        dist = np.sqrt((diff**2).sum(axis=-1))
        np.fill_diagonal(dist, np.inf)
        overlap = self.radius[:, None] + self.radius[None, :] - dist
        mag = A * np.exp(np.minimum(overlap, 0.5) / B * 0.5)
        mag[dist > reach] = 0.0
        mag += k * np.maximum(overlap, 0.0)
        mag[:, ~self.inside] = 0.0
        # people react less to what is behind them
        heading = self.vel / np.maximum(np.linalg.norm(self.vel, axis=1), 1e-3)[:, None]
        dist = np.maximum(dist, 1e-6)
        cosphi = -np.einsum("ijk,ik->ij", diff, heading) / dist
        mag *= 0.4 + 0.6 * 0.5 * (1.0 + cosphi)
        touching = (overlap > 0) & self.inside[:, None] & self.inside
        return (diff * (mag / dist)[..., None]).sum(axis=1), touching.sum(axis=1)

    def walls(self, A=5.0, B=0.2):
        x, y = self.pos.T
        f = np.zeros_like(self.pos)
        f[:, 0] += A * np.exp(-np.maximum(x, 0.0) / B)
        f[:, 1] += A * np.exp(-np.maximum(y, 0.0) / B)
        f[:, 1] -= A * np.exp(-np.maximum(HEIGHT - y, 0.0) / B)
        at_door = (np.abs(y[:, None] - DOORS[:, 1]) < DOOR_HALF).any(axis=1)
        right = A * np.exp(-np.maximum(WIDTH - x, 0.0) / B)
        f[:, 0] -= np.where(at_door, 0.0, right)
        return f

    def step(self, t, dt):
        rep, contacts = self.repulsion()
        acc = self.drive() + rep + self.walls()
        acc += self.rng.normal(scale=0.3, size=acc.shape)
        self.vel += dt * acc
        speed = np.linalg.norm(self.vel, axis=1)
        fast = speed > 1.5 * self.v0
        self.vel[fast] *= (1.5 * self.v0[fast] / speed[fast])[:, None]
        self.vel[~self.inside] = 0.0
        self.pos += dt * self.vel
        self.pos[:, 1] = np.clip(self.pos[:, 1], 0.05, HEIGHT - 0.05)
        y_off = np.abs(self.pos[:, 1] - DOORS[self.target, 1])
        out = self.inside & (self.pos[:, 0] > WIDTH - 0.3) & (y_off < DOOR_HALF)
        self.exit_time[out] = t
        self.inside &= ~out
        np.clip(self.pos[:, 0], 0.05, WIDTH - 0.05, out=self.pos[:, 0])
        return contacts


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    pos = np.column_stack([rng.uniform(12, WIDTH - 1, n), rng.uniform(1, HEIGHT - 1, n)])
    v0 = np.clip(rng.normal(1.34, 0.26, n), 0.6, 2.2)
    return {"pos": pos, "v0": v0, "radius": rng.uniform(0.2, 0.3, n), "seed": seed}


def run(state):
    n = len(state["v0"])
    rng = np.random.default_rng(state["seed"] + 100)
    crowd = Crowd(state["pos"].copy(), np.zeros((n, 2)), state["v0"], state["radius"], rng)
    dt, steps = 0.1, 28
    density = np.zeros((10, 15))
    remaining = np.empty(steps, dtype=int)
    pressure = np.zeros(n)
    for k in range(steps):
        if k % 5 == 0:
            crowd.choose_door()
        pressure += crowd.step(k * dt, dt)
        live = crowd.pos[crowd.inside]
        ix = np.minimum((live[:, 0] / WIDTH * 15).astype(int), 14)
        iy = np.minimum((live[:, 1] / HEIGHT * 10).astype(int), 9)
        np.add.at(density, (iy, ix), 1.0)
        remaining[k] = np.count_nonzero(crowd.inside)
    speed = np.linalg.norm(crowd.vel, axis=1)
    return {
        "pos": crowd.pos,
        "remaining": remaining,
        "density": density / (steps * 4.0),
        "exit_time": np.where(crowd.inside, steps * dt, crowd.exit_time),
        "pressure": pressure / steps,
        "mean_speed": speed[crowd.inside].mean() if crowd.inside.any() else 0.0,
        "door_use": np.bincount(crowd.target, minlength=2),
    }


def check(result):
    return list(result.values())
