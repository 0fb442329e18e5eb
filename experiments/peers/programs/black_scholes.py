"""Black-Scholes: one loop over the options, with vector maths where the tool has it."""

from __future__ import annotations

import numpy as np

from experiments.peers import program
from experiments.peers.program import Outputs, State
from kernels.black_scholes import RATE, VOLATILITY, options

DRIFT = RATE + 0.5 * VOLATILITY * VOLATILITY
ROOT2 = 2.0**0.5


def setup(size: int) -> State:
    """The options and room for their prices."""
    spot, strike, maturity = options(size)
    return State(
        spot=spot, strike=strike, maturity=maturity, call=np.zeros(size), put=np.zeros(size)
    )


def outputs(s: State) -> Outputs:
    """Read the prices."""
    return {"call": s.call, "put": s.put}


def floor(size: int) -> int:
    """Three inputs, two outputs."""
    return 40 * size


def cpp(build):
    run_cpp = build("black_scholes", RATE=RATE, VOLATILITY=VOLATILITY, DRIFT=DRIFT)

    def run(s: State) -> None:
        run_cpp(s.spot.size, s.spot, s.strike, s.maturity, s.call, s.put)

    return run


def numba(njit):
    from math import erf, exp, log, sqrt

    from numba import prange

    @njit
    def price(spot, strike, maturity, call, put):
        for i in prange(spot.size):
            sigma = VOLATILITY * sqrt(maturity[i])
            d1 = (log(spot[i] / strike[i]) + DRIFT * maturity[i]) / sigma
            n1 = 0.5 * (1.0 + erf(d1 / ROOT2))
            n2 = 0.5 * (1.0 + erf((d1 - sigma) / ROOT2))
            discounted = strike[i] * exp(-RATE * maturity[i])
            call[i] = spot[i] * n1 - discounted * n2
            put[i] = call[i] - spot[i] + discounted

    def run(s: State) -> None:
        price(s.spot, s.strike, s.maturity, s.call, s.put)

    return run


def numpy(np=np):
    erf = program.erf(np)

    def run(s: State) -> None:
        sigma = VOLATILITY * np.sqrt(s.maturity)
        d1 = (np.log(s.spot / s.strike) + DRIFT * s.maturity) / sigma
        n1 = 0.5 * (1.0 + erf(d1 / ROOT2))
        n2 = 0.5 * (1.0 + erf((d1 - sigma) / ROOT2))
        discounted = s.strike * np.exp(-RATE * s.maturity)
        np.subtract(s.spot * n1, discounted * n2, out=s.call)
        np.add(s.call - s.spot, discounted, out=s.put)

    return run


def cupy_fuse(cupy):
    erf = program.erf(cupy)

    @cupy.fuse
    def price(spot, strike, maturity):
        sigma = VOLATILITY * cupy.sqrt(maturity)
        d1 = (cupy.log(spot / strike) + DRIFT * maturity) / sigma
        n1 = 0.5 * (1.0 + erf(d1 / ROOT2))
        n2 = 0.5 * (1.0 + erf((d1 - sigma) / ROOT2))
        discounted = strike * cupy.exp(-RATE * maturity)
        call = spot * n1 - discounted * n2
        return call, call - spot + discounted

    def run(s: State) -> None:
        s.call, s.put = price(s.spot, s.strike, s.maturity)

    return run


def torch(torch):
    @torch.compile
    def price(spot, strike, maturity):
        sigma = VOLATILITY * torch.sqrt(maturity)
        d1 = (torch.log(spot / strike) + DRIFT * maturity) / sigma
        n1 = 0.5 * (1.0 + torch.erf(d1 / ROOT2))
        n2 = 0.5 * (1.0 + torch.erf((d1 - sigma) / ROOT2))
        discounted = strike * torch.exp(-RATE * maturity)
        call = spot * n1 - discounted * n2
        return call, call - spot + discounted

    def run(s: State) -> None:
        s.call, s.put = price(s.spot, s.strike, s.maturity)

    return run


def numba_cuda(cuda):
    from math import erf, exp, log, sqrt

    @cuda.jit
    def price(spot, strike, maturity, call, put):
        i = cuda.grid(1)
        if i < spot.size:
            sigma = VOLATILITY * sqrt(maturity[i])
            d1 = (log(spot[i] / strike[i]) + DRIFT * maturity[i]) / sigma
            n1 = 0.5 * (1.0 + erf(d1 / ROOT2))
            n2 = 0.5 * (1.0 + erf((d1 - sigma) / ROOT2))
            discounted = strike[i] * exp(-RATE * maturity[i])
            call[i] = spot[i] * n1 - discounted * n2
            put[i] = call[i] - spot[i] + discounted

    def run(s: State) -> None:
        price[-(-s.spot.size // 256), 256](s.spot, s.strike, s.maturity, s.call, s.put)

    return run


def jax():
    import jax.numpy as jnp
    from jax import jit
    from jax.scipy.special import erf

    @jit
    def price(spot, strike, maturity):
        sigma = VOLATILITY * jnp.sqrt(maturity)
        d1 = (jnp.log(spot / strike) + DRIFT * maturity) / sigma
        n1 = 0.5 * (1.0 + erf(d1 / ROOT2))
        n2 = 0.5 * (1.0 + erf((d1 - sigma) / ROOT2))
        discounted = strike * jnp.exp(-RATE * maturity)
        call = spot * n1 - discounted * n2
        return call, call - spot + discounted

    def run(s: State) -> None:
        s.call, s.put = price(s.spot, s.strike, s.maturity)

    return run
