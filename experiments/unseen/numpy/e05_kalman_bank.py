"""A bank of constant-velocity Kalman filters, one per target, run in lockstep.

State (x, y, vx, vy), range measurements of position with missing detections and
an innovation gate.  Everything is batched: matmul on stacks, np.linalg.solve on
stacks, einsum for the Mahalanobis distance.
"""

import numpy as np

SIZES = {"small": 10, "default": 2800, "large": 30000}
T = 6
DT = 0.5


def make(n, seed=1):
    rng = np.random.default_rng(seed)
    F = np.eye(4)
    F[0, 2] = F[1, 3] = DT
    q = 0.05
    Q = q * np.block(
        [
            [DT**3 / 3 * np.eye(2), DT**2 / 2 * np.eye(2)],
            [DT**2 / 2 * np.eye(2), DT * np.eye(2)],
        ]
    )
    H = np.hstack([np.eye(2), np.zeros((2, 2))])
    truth = np.concatenate([rng.uniform(-100, 100, (n, 2)), rng.normal(0, 3, (n, 2))], axis=1)
    zs, seen = [], []
    L = np.linalg.cholesky(Q)
    for t in range(T):
        truth = truth @ F.T + rng.standard_normal((n, 4)) @ L.T
        z = truth[:, :2] + rng.normal(0, 1.5, (n, 2))
        clutter = rng.random(n) < 0.05
        z[clutter] += rng.normal(0, 60, (clutter.sum(), 2))
        zs.append(z)
        seen.append(rng.random(n) < 0.9)
    sig = rng.uniform(1.0, 2.0, n)
    R = np.eye(2)[None] * (sig**2)[:, None, None]
    return dict(F=F, Q=Q, H=H, R=R, z=np.array(zs), seen=np.array(seen), truth=truth)


def predict(m, P, F, Q):
    m = m @ F.T
    P = F @ P @ F.T + Q
    return m, P


def update(m, P, z, ok, H, R, gate=13.8):
    v = z - m @ H.T
    S = H @ P @ H.T + R
    PHt = P @ H.T
    K = np.linalg.solve(S, PHt.transpose(0, 2, 1)).transpose(0, 2, 1)
    d2 = np.einsum("ni,nij,nj->n", v, np.linalg.inv(S), v)
    use = ok & (d2 < gate)
    K = K * use[:, None, None]
    m = m + (K @ v[:, :, None])[..., 0]
    IKH = np.eye(4) - K @ H
    # Joseph form keeps P symmetric
    P = IKH @ P @ np.swapaxes(IKH, 1, 2) + K @ R @ np.swapaxes(K, -1, -2)
    _, logdet = np.linalg.slogdet(2 * np.pi * S)
    ll = np.where(use, -0.5 * (d2 + logdet), 0.0)
    return m, P, ll, use


def run(state):
    F, Q, H, R = state["F"], state["Q"], state["H"], state["R"]
    z, seen = state["z"], state["seen"]
    n = z.shape[1]
    m = np.zeros((n, 4))
    m[:, :2] = z[0]
    P = np.broadcast_to(np.diag([4.0, 4.0, 25.0, 25.0]), (n, 4, 4)).copy()
    loglik = np.zeros(n)
    hits = np.zeros(n, dtype=np.int64)
    path = np.empty((T, n, 2))
    path[0] = m[:, :2]
    for t in range(1, T):
        m, P = predict(m, P, F, Q)
        m, P, ll, use = update(m, P, z[t], seen[t], H, R)
        loglik += ll
        hits[use] += 1
        path[t] = m[:, :2]
    err = np.sqrt(((m[:, :2] - state["truth"][:, :2]) ** 2).sum(1))
    spread = np.sqrt(np.trace(P[:, :2, :2], axis1=1, axis2=2))
    return m, P, loglik, hits, path, np.median(err), spread.mean()


def check(result):
    return list(result)
