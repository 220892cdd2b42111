"""One row per distribution: parameters, values, and SciPy's distribution for them, where it has one."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Row(NamedTuple):
    """name of the class; parameters (arrays or numbers); values inside the support, batch last.

    scipy: a function of ``scipy.stats`` and the parameters. Without a value, samples of torch are taken.
    """

    name: str
    parameters: dict[str, Any]
    value: Any
    scipy: Callable | None = None
    discrete: bool = False
    entropy: bool = True
    id: str = ""


def floats(*values: float) -> np.ndarray:
    return np.array(values)


ROWS: list[Row] = []


def row(name: str, parameters: dict[str, Any], value: Any, scipy: Callable | None = None,
        **settings: Any) -> None:
    which = ",".join(parameters)
    ROWS.append(Row(name, parameters, np.asarray(value), scipy, id=f"{name}({which})", **settings))


row("Normal", {"loc": floats(0.0, -1.5, 3.0), "scale": floats(1.0, 0.3, 7.0)}, floats(0.2, -1.0, 20.0),
    lambda S, loc, scale: S.norm(loc, scale))
row("Normal", {"loc": 1.0, "scale": floats(1.0, 2.0)}, floats(0.2, -9.0),
    lambda S, loc, scale: S.norm(loc, scale))
row("Uniform", {"low": floats(0.0, -3.0), "high": floats(2.0, -1.0)}, floats(0.5, -2.9),
    lambda S, low, high: S.uniform(low, high - low))
row("Gamma", {"concentration": floats(0.3, 1.0, 20.0), "rate": floats(1.0, 0.2, 5.0)}, floats(0.1, 4.0, 5.0),
    lambda S, concentration, rate: S.gamma(concentration, scale=1 / rate))
row("Bernoulli", {"probs": floats(0.1, 0.5, 0.9)}, floats(1.0, 0.0, 0.0), lambda S, probs: S.bernoulli(probs),
    discrete=True)
row("Bernoulli", {"logits": floats(-3.0, 0.2)}, floats(1.0, 0.0),
    lambda S, logits: S.bernoulli(1 / (1 + np.exp(-logits))), discrete=True)
row("Categorical", {"probs": np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])}, [2, 0], discrete=True)
row("Categorical", {"logits": np.array([[0.1, 2.0, -1.0], [0.5, 0.5, 0.0]])}, [2, 1], discrete=True)
