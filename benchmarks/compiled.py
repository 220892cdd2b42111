"""Some workloads written for JAX and compiled by it: what a compiler makes of the whole step.

JAX has its own API, so these are second sources; each is checked against the others before it is timed. It
takes as many threads as the process has cores.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .workload import Case, weights
from .workloads.dense import LR, MOMENTUM

CASES: dict[str, Callable[..., Case]] = {}


def compiled(name: str) -> Callable[[Callable], Callable]:
    """List a builder as the JAX version of the workload ``name``; it takes the same sizes."""
    def register(build: Callable) -> Callable:
        CASES[name] = build
        return build
    return register


def _normal(*shape: int, seed: int = 0) -> Any:
    import jax.numpy as jnp
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape, dtype=np.float32))


def _forward(f: Callable, *inputs: Any) -> Case:
    import jax
    run = jax.jit(f)
    return Case(lambda: jax.block_until_ready(run(*inputs)))


def _there_and_back(f: Callable, *inputs: Any) -> Case:
    """Forward and backward with the gradients of the output that ``there_and_back`` takes."""
    import jax
    g = _normal(*jax.eval_shape(f, *inputs).shape, seed=99)

    @jax.jit
    def both(g: Any, *inputs: Any) -> tuple:
        y, pull = jax.vjp(f, *inputs)
        return y, *pull(g)
    return Case(lambda: jax.block_until_ready(both(g, *inputs)), list)


@compiled("add-large")
def add_large(rows: int = 1024, columns: int = 4096) -> Case:
    return _forward(lambda a, b: a + b, _normal(rows, columns), _normal(rows, columns, seed=1))


def _gates(a: Any, b: Any, c: Any) -> Any:
    import jax
    return jax.numpy.tanh(a * b + c) * jax.nn.sigmoid(a)


@compiled("elementwise")
def elementwise(rows: int = 1024, columns: int = 4096) -> Case:
    return _forward(_gates, *(_normal(rows, columns, seed=s) for s in range(3)))


@compiled("elementwise-grad")
def elementwise_grad(rows: int = 1024, columns: int = 4096) -> Case:
    return _there_and_back(_gates, *(_normal(rows, columns, seed=s) for s in range(3)))


@compiled("gelu")
def gelu(rows: int = 1024, columns: int = 4096) -> Case:
    import jax
    return _there_and_back(lambda x: jax.nn.gelu(x, approximate=False), _normal(rows, columns))


@compiled("softmax")
def softmax(rows: int = 4096, columns: int = 1024) -> Case:
    import jax
    return _there_and_back(lambda x: jax.nn.softmax(x, 1), _normal(rows, columns))


@compiled("layer-norm")
def layer_norm(rows: int = 4096, columns: int = 1024) -> Case:
    def norm(x: Any, w: Any, b: Any) -> Any:
        d = x - x.mean(1, keepdims=True)
        return d / ((d * d).mean(1, keepdims=True) + 1e-5) ** 0.5 * w + b
    return _there_and_back(norm, _normal(rows, columns), _normal(columns, seed=1), _normal(columns, seed=2))


@compiled("sum-rows")
def sum_rows(rows: int = 4096, columns: int = 1024) -> Case:
    return _forward(lambda x: x.sum(1), _normal(rows, columns))


@compiled("sum-columns")
def sum_columns(rows: int = 4096, columns: int = 1024) -> Case:
    return _forward(lambda x: x.sum(0), _normal(rows, columns))


@compiled("standardize")
def standardize(rows: int = 4096, columns: int = 1024) -> Case:
    return _there_and_back(lambda x: (x - x.mean(0)) / (x.var(0, ddof=1) + 1e-5) ** 0.5,
                           _normal(rows, columns))


@compiled("outer-sum")
def outer_sum(rows: int = 2048, columns: int = 2048) -> Case:
    return _there_and_back(lambda a, b, c: a * b + c, _normal(rows, 1),
                           *(_normal(columns, seed=s) for s in (1, 2)))


@compiled("cumsum")
def cumsum(rows: int = 2048, columns: int = 1024) -> Case:
    return _there_and_back(lambda x: x.cumsum(1), _normal(rows, columns))


def _cross_entropy(z: Any, y: Any) -> Any:
    import jax
    return -jax.numpy.take_along_axis(jax.nn.log_softmax(z, 1), y[:, None], 1).mean()


@compiled("mlp-step")
def mlp_step(batch: int = 256, widths: tuple[int, ...] = (784, 1024, 1024, 10)) -> Case:
    """The training step; its state is given on, and the memory of the old one with it."""
    import jax
    layers = len(widths) - 1
    names = [f"{2 * i}.{kind}" for i in range(layers) for kind in ("weight", "bias")]
    shapes = [shape for i in range(layers) for shape in ((widths[i + 1], widths[i]), (widths[i + 1],))]
    x = _normal(batch, widths[0])
    y = jax.numpy.asarray(np.random.default_rng(0).integers(0, widths[-1], batch))
    p = {name: jax.numpy.asarray(weights(name, shape)) for name, shape in zip(names, shapes)}
    state = [p, jax.tree.map(jax.numpy.zeros_like, p)]

    def loss(p: dict) -> Any:
        z = x
        for i in range(layers):
            z = z @ p[f"{2 * i}.weight"].T + p[f"{2 * i}.bias"]
            z = jax.nn.relu(z) if i < layers - 1 else z
        return _cross_entropy(z, y)

    def update(p: dict, speed: dict) -> tuple:
        value, grads = jax.value_and_grad(loss)(p)
        speed = jax.tree.map(lambda v, g: MOMENTUM * v + g, speed, grads)
        return value, grads, jax.tree.map(lambda w, v: w - LR * v, p, speed), speed
    step = jax.jit(update, donate_argnums=(0, 1))

    def run() -> Any:
        value, grads, *state[:] = step(*state)
        return jax.block_until_ready((value, grads))

    def values(found: tuple) -> list:
        return [found[0], *[found[1][k] for k in sorted(names)], *[state[0][k] for k in sorted(names)]]
    return Case(run, values)


@compiled("conv3x3-step")
def conv3x3_step(batch: int = 8, channels: int = 128, size: int = 28) -> Case:
    import jax
    x = _normal(batch, channels, size, size)
    state = [jax.numpy.asarray(weights(name, shape)) for name, shape in
             (("weight", (channels, channels, 3, 3)), ("bias", (channels,)))]

    def loss(w: Any, b: Any, x: Any) -> Any:
        z = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME") + b[:, None, None]
        return (z * z).mean()

    def update(w: Any, b: Any) -> tuple:
        value, (gw, gb, gx) = jax.value_and_grad(loss, (0, 1, 2))(w, b, x)
        return value, gw, gb, gx, w - 1e-4 * gw, b - 1e-4 * gb
    step = jax.jit(update, donate_argnums=(0, 1))

    def run() -> Any:
        *found, state[0], state[1] = jax.block_until_ready(step(*state))
        return found
    return Case(run, lambda r: [r[0], r[2], r[1], state[1], state[0], r[3]])
