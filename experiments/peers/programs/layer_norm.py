"""Layer normalisation: a row at a time through all layers."""

from __future__ import annotations

import numpy as np

from experiments.peers.program import Outputs, State
from kernels.layer_norm import EPSILON, FEATURES, LAYERS, initial


def setup(size: int) -> State:
    """Activations, gains and biases."""
    x, gain, bias = initial(size)
    return State(x=x, gain=gain, bias=bias)


def outputs(s: State) -> Outputs:
    """Read the activations."""
    return {"x": np.asarray(s.x)}


def floor(size: int) -> int:
    """Activations are read and written."""
    return 16 * size * FEATURES


def cpp(build):
    run_cpp = build("layer_norm", FEATURES=FEATURES, LAYERS=LAYERS, EPSILON=EPSILON)

    def run(s: State) -> None:
        run_cpp(len(s.x), s.x, s.gain, s.bias)

    return run


def numba(njit):
    from math import sqrt

    from numba import prange

    @njit
    def layers(x, gain, bias):
        for i in prange(len(x)):
            for layer in range(LAYERS):
                total = 0.0
                for j in range(FEATURES):
                    total += x[i, j]
                mean = total / FEATURES
                square = 0.0
                for j in range(FEATURES):
                    square += (x[i, j] - mean) * (x[i, j] - mean)
                inverse = 1.0 / sqrt(square / FEATURES + EPSILON)
                for j in range(FEATURES):
                    x[i, j] += (x[i, j] - mean) * inverse * gain[layer, j] + bias[layer, j]

    def run(s: State) -> None:
        layers(s.x, s.gain, s.bias)

    return run


def numpy(np=np):
    def run(s: State) -> None:
        for gain, bias in zip(s.gain, s.bias, strict=True):
            y = s.x - s.x.mean(axis=1, keepdims=True)
            spread = np.einsum("ij,ij->i", y, y) / FEATURES
            y /= np.sqrt(spread + EPSILON)[:, None]
            y *= gain
            y += bias
            s.x += y

    return run


def cupy_fuse(cupy):
    @cupy.fuse
    def deviation(x, mean):
        return (x - mean) * (x - mean)

    @cupy.fuse
    def connected(x, mean, variance, gain, bias):
        return x + (x - mean) / cupy.sqrt(variance + EPSILON) * gain + bias

    def run(s: State) -> None:
        for gain, bias in zip(s.gain, s.bias, strict=True):
            mean = s.x.mean(axis=1, keepdims=True)
            variance = deviation(s.x, mean).mean(axis=1, keepdims=True)
            s.x = connected(s.x, mean, variance, gain, bias)

    return run


def torch(torch):
    @torch.compile
    def layers(x, gain, bias):
        for layer in range(LAYERS):
            y = torch.nn.functional.layer_norm(
                x, (FEATURES,), gain[layer], bias[layer], eps=EPSILON
            )
            x = x + y
        return x

    def run(s: State) -> None:
        s.x = layers(s.x, s.gain, s.bias)

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit

    @jit
    def layers(x, gain, bias):
        for layer in range(LAYERS):
            y = x - x.mean(axis=1, keepdims=True)
            y /= jnp.sqrt((y * y).mean(axis=1, keepdims=True) + EPSILON)
            x = x + y * gain[layer] + bias[layer]
        return x

    def run(s: State) -> None:
        s.x = layers(s.x, s.gain, s.bias)

    return run
