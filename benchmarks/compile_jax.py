"""The steps of ``compile_steps.py`` written for JAX and compiled by it; prints one line of JSON.

Run by the Python that has JAX, which need not have this package: ``python benchmarks/compile_jax.py``. Of
each step: seconds of the first call, which compiles, and the median of seconds per call.
"""

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

keys = iter(jax.random.split(jax.random.PRNGKey(0), 200))


def normal(*shape: int) -> Any:
    return jax.random.normal(next(keys), shape) * (0.1 if len(shape) > 1 else 0.0)


def cross_entropy(z: Any, y: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(z, 1), y[:, None], 1).mean()


def adam(loss: Callable, params: Any) -> Callable:
    m, v = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
    state = [params, m, v, jnp.zeros(())]

    def update(p: Any, m: Any, v: Any, t: Any) -> Any:
        value, g = jax.value_and_grad(loss)(p)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        p = jax.tree.map(lambda p, m, v: p - 1e-3 * (m / (1 - 0.9 ** t)) / (
            jnp.sqrt(v / (1 - 0.999 ** t)) + 1e-8), p, m, v)
        return value, p, m, v, t
    step = jax.jit(update, donate_argnums=(0, 1, 2, 3))

    def run() -> Any:
        value, *state[:] = step(*state)
        return jax.block_until_ready(value)
    return run


def sgd(loss: Callable, params: Any) -> Callable:
    state = [params]

    def update(p: Any) -> Any:
        value, g = jax.value_and_grad(loss)(p)
        return value, jax.tree.map(lambda p, g: p - 0.01 * g, p, g)
    step = jax.jit(update, donate_argnums=0)

    def run() -> Any:
        value, state[0] = step(state[0])
        return jax.block_until_ready(value)
    return run


def layer(out: int, width: int) -> dict:
    return {"w": normal(out, width), "b": normal(out)}


def linear(p: dict, x: Any) -> Any:
    return x @ p["w"].T + p["b"]


def mlp() -> Callable:
    x, y = normal(32, 64), jax.random.randint(next(keys), (32,), 0, 10)
    params = [layer(64, 64), layer(64, 64), layer(10, 64)]
    return adam(lambda p: cross_entropy(linear(p[2], jax.nn.relu(linear(p[1], jax.nn.relu(linear(p[0], x))))),
                                        y), params)


def lstm() -> Callable:
    xs, params = normal(40, 8, 16), [layer(128, 16), layer(128, 32)]

    def loss(p: Any) -> Any:
        def cell(state: Any, x: Any) -> Any:
            h, c = state
            i, f, g, o = jnp.split(linear(p[0], x) + linear(p[1], h), 4, 1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None
        return jax.lax.scan(cell, (jnp.zeros((8, 32)), jnp.zeros((8, 32))), xs)[0][0].sum()
    return sgd(loss, params)


def norm(p: dict, x: Any) -> Any:
    d = x - x.mean(-1, keepdims=True)
    return d / jnp.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * (1 + p["w"]) + p["b"]


def gpt() -> Callable:
    ids, wanted = (jax.random.randint(next(keys), shape, 0, 65) for shape in ((4, 32), (128,)))
    one = lambda: {"w": jnp.zeros(32), "b": jnp.zeros(32)}
    blocks = [{"first": one(), "second": one(), "qkv": layer(96, 32), "out": layer(32, 32),
               "up": layer(128, 32), "down": layer(32, 128)} for _ in range(2)]
    params = {"names": normal(65, 32), "places": normal(32, 32), "blocks": blocks, "norm": one(),
              "head": layer(65, 32)}
    mask = jnp.tril(jnp.ones((32, 32), bool))

    def loss(p: Any) -> Any:
        x = p["names"][ids] + p["places"]
        for b in p["blocks"]:
            q, k, v = linear(b["qkv"], norm(b["first"], x)).reshape(4, 32, 3, 4, 8).transpose(2, 0, 3, 1, 4)
            scores = jnp.where(mask, q @ k.swapaxes(-1, -2) * 8 ** -0.5, -jnp.inf)
            y = jax.nn.softmax(scores, -1) @ v
            x = x + linear(b["out"], y.transpose(0, 2, 1, 3).reshape(4, 32, 32))
            x = x + linear(b["down"], jax.nn.gelu(linear(b["up"], norm(b["second"], x)), approximate=False))
        return cross_entropy(linear(p["head"], norm(p["norm"], x)).reshape(-1, 65), wanted)
    return adam(loss, params)


def cnn() -> Callable:
    x, y = normal(32, 1, 28, 28), jax.random.randint(next(keys), (32,), 0, 10)
    params = [(normal(8, 1, 3, 3), normal(8)), (normal(16, 8, 3, 3), normal(16)), layer(10, 784)]

    def loss(p: Any) -> Any:
        z = x
        for w, b in p[:2]:
            z = jax.nn.relu(jax.lax.conv_general_dilated(z, w, (1, 1), "SAME") + b[:, None, None])
            z = jax.lax.reduce_window(z, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        return cross_entropy(linear(p[2], z.reshape(32, -1)), y)
    return adam(loss, params)


def chain(n: int, backward: bool) -> Callable:
    a, b, c = normal(n, n), normal(n, n), normal(n, n)

    def run(a: Any, b: Any, c: Any) -> Any:
        return jnp.tanh(a * b + c) * jax.nn.sigmoid(a)
    f = jax.jit(jax.value_and_grad(lambda *xs: run(*xs).sum(), (0, 1, 2)) if backward else run)
    return lambda: jax.block_until_ready(f(a, b, c))


CASES: list[Callable] = [mlp, lstm, gpt, cnn, *(lambda n=n, b=b: chain(n, b) for n in (256, 2048)
                                                for b in (False, True))]


def main() -> None:
    """Print [first call, later calls] of each."""
    found = []
    for make in CASES:
        f = make()
        start = time.perf_counter()
        f()
        first = time.perf_counter() - start
        times = []
        for _ in range(5):
            f()
        for _ in range(200 if first < 1 else 100):
            start = time.perf_counter()
            f()
            times.append(time.perf_counter() - start)
        found.append([first, statistics.median(times)])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
