"""Machine learning: one causal transformer block in float32 (layer norm, attention with rotary angles, GELU MLP, loss)."""

import numpy as np

SIZES = {"small": 20, "default": 180, "large": 900}  # tokens
DIM, HEADS, VOCAB = 32, 4, 50


def make(n, seed=1):
    rng = np.random.default_rng(seed)

    def w(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    return {
        "tokens": rng.integers(0, VOCAB, n + 1),
        "embed": w(VOCAB, DIM) * 4,
        "wqkv": w(DIM, 3 * DIM),
        "wo": w(DIM, DIM),
        "w1": w(DIM, 4 * DIM),
        "w2": w(4 * DIM, DIM),
        "b1": np.zeros(4 * DIM, np.float32),
        "g1": np.ones(DIM, np.float32),
        "g2": np.ones(DIM, np.float32),
    }


def layer_norm(x, gain, eps=1e-5):
    mu = x.mean(axis=-1, keepdims=True)
    var = x.var(axis=-1, keepdims=True)
    return gain * (x - mu) / np.sqrt(var + eps)


def softmax(x):
    x = x - x.max(axis=-1, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(axis=-1, keepdims=True)
    return x


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi).astype(np.float32) * (x + 0.044715 * x**3)))


def rotary(x):
    """x: heads, tokens, d"""
    h, t, d = x.shape
    freq = 10000.0 ** (-np.arange(0, d, 2) / d)
    ang = (np.arange(t)[:, None] * freq).astype(np.float32)
    c, s = np.cos(ang), np.sin(ang)
    even, odd = x[..., ::2], x[..., 1::2]
    out = np.empty_like(x)
    out[..., ::2] = even * c - odd * s
    out[..., 1::2] = even * s + odd * c
    return out


def attention(x, wqkv, wo):
    t = x.shape[0]
    qkv = (x @ wqkv).reshape(t, 3, HEADS, DIM // HEADS).transpose(1, 2, 0, 3)
    q, k, v = rotary(qkv[0]), rotary(qkv[1]), qkv[2]
    score = np.einsum("htd,hsd->hts", q, k) / np.float32(np.sqrt(DIM // HEADS))
    future = np.triu(np.ones((t, t), dtype=bool), k=1)
    score[:, future] = -np.inf
    p = softmax(score)
    y = (p @ v).transpose(1, 0, 2).reshape(t, DIM)
    entropy = -np.sum(p * np.log(p + 1e-9), axis=-1).mean(axis=1)
    return y @ wo, entropy


def run(s):
    x = s["embed"][s["tokens"][:-1]]
    att, entropy = attention(layer_norm(x, s["g1"]), s["wqkv"], s["wo"])
    x = x + att
    x = x + gelu(layer_norm(x, s["g2"]) @ s["w1"] + s["b1"]) @ s["w2"]
    logits = layer_norm(x, s["g1"]) @ s["embed"].T
    target = s["tokens"][1:]
    p = softmax(logits)
    loss = -np.log(p[np.arange(len(target)), target] + 1e-12)
    accuracy = np.mean(logits.argmax(axis=1) == target)
    return x, loss, float(loss.mean()), entropy, float(accuracy)


def check(result):
    x, loss, mean, entropy, acc = result
    return [x, loss, mean, entropy, acc]
