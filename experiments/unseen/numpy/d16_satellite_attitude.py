"""Spacecraft: attitude of many satellites with a quaternion class, rigid-body rotation, sun sensors, detumbling."""

import numpy as np

SIZES = {"small": 300, "default": 15_000, "large": 260_000}


class Quat:
    """array of quaternions, shape (..., 4), scalar first"""

    def __init__(self, q):
        self.q = q

    def __mul__(self, other):
        w1, x1, y1, z1 = np.moveaxis(self.q, -1, 0)
        w2, x2, y2, z2 = np.moveaxis(other.q, -1, 0)
        return Quat(
            np.stack(
                [
                    w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
                    w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
                    w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
                    w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
                ],
                axis=-1,
            )
        )

    def __invert__(self):
        return Quat(self.q * np.array([1.0, -1.0, -1.0, -1.0]))

    def normalised(self):
        return Quat(self.q / np.linalg.norm(self.q, axis=-1, keepdims=True))

    def rotate(self, v):
        w, u = self.q[..., :1], self.q[..., 1:]
        t = 2 * np.cross(u, v)
        return v + w * t + np.cross(u, t)

    @classmethod
    def from_rotvec(cls, r):
        angle = np.sqrt(np.einsum("ij,ij->i", r, r))
        half = 0.5 * angle
        scale = np.full_like(angle, 0.5)
        np.divide(np.sin(half), angle, out=scale, where=angle > 1e-9)
        return cls(np.concatenate([np.cos(half)[:, None], r * scale[:, None]], axis=1))


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    q = Quat(rng.standard_normal((n, 4))).normalised()
    omega = 0.3 * rng.standard_normal((n, 3))
    inertia = rng.uniform(0.8, 1.6, (n, 3))
    return {
        "att": q,
        "omega": omega,
        "inertia": inertia,
        "dt": 0.1,
        "sun": np.array([0.6, 0.0, 0.8]),
        "torque": 0.01,
    }


def euler_rates(omega, inertia, torque):
    return (torque - np.cross(omega, inertia * omega)) / inertia


def run(s):
    att, omega, I, dt = s["att"], s["omega"], s["inertia"], s["dt"]
    # bang-bang wheels only for the fast tumblers
    speed = np.linalg.norm(omega, axis=1)
    fast = speed > 0.4
    torque = np.where(fast[:, None], -s["torque"] * np.sign(omega), 0.0)
    mid = omega + 0.5 * dt * euler_rates(omega, I, torque)
    new = omega + dt * euler_rates(mid, I, torque)
    att = (att * Quat.from_rotvec(dt * mid)).normalised()
    s["att"], s["omega"] = att, new

    sun_body = (~att).rotate(s["sun"])
    panel = np.clip(sun_body[:, 2], 0.0, None)
    sensor = np.where(np.abs(sun_body) > 0.5, sun_body, 0.0)
    brightest = np.abs(sun_body).argmax(axis=1)
    faces = np.bincount(brightest, minlength=3)
    energy = 0.5 * (I * new**2).sum(axis=1)
    return (
        att.q,
        sun_body,
        float(panel.mean()),
        faces,
        float(energy.mean()),
        int(fast.sum()),
        sensor.std(axis=0),
    )


def check(result):
    q, sun, power, faces, energy, fast, sensor = result
    return [q, sun, power, faces.astype(float), energy, float(fast), sensor]
