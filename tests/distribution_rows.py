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
row("Beta", {"concentration1": floats(0.5, 2.0, 30.0), "concentration0": floats(0.7, 3.0, 4.0)},
    floats(0.1, 0.4, 0.9), lambda S, concentration1, concentration0: S.beta(concentration1, concentration0))
row("Dirichlet", {"concentration": np.array([[1.5, 0.5, 3.0], [2.0, 2.0, 2.0]])},
    np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]))
row("Exponential", {"rate": floats(0.5, 3.0)}, floats(0.1, 2.0), lambda S, rate: S.expon(scale=1 / rate))
row("Chi2", {"df": floats(0.5, 3.0, 40.0)}, floats(0.1, 2.0, 30.0), lambda S, df: S.chi2(df))
row("FisherSnedecor", {"df1": floats(3.0, 10.0), "df2": floats(9.0, 5.0)}, floats(0.5, 2.0),
    lambda S, df1, df2: S.f(df1, df2))
row("StudentT", {"df": floats(3.0, 10.0), "loc": floats(1.0, 0.0), "scale": floats(0.5, 2.0)},
    floats(0.5, -2.0), lambda S, df, loc, scale: S.t(df, loc, scale))
row("Cauchy", {"loc": floats(1.0, 0.0), "scale": floats(0.5, 2.0)}, floats(0.5, -2.0),
    lambda S, loc, scale: S.cauchy(loc, scale))
row("HalfCauchy", {"scale": floats(0.5, 2.0)}, floats(0.5, 2.0), lambda S, scale: S.halfcauchy(scale=scale))
row("HalfNormal", {"scale": floats(0.5, 2.0)}, floats(0.5, 2.0), lambda S, scale: S.halfnorm(scale=scale))
row("Laplace", {"loc": floats(1.0, 0.0), "scale": floats(0.5, 2.0)}, floats(0.5, 2.0),
    lambda S, loc, scale: S.laplace(loc, scale))
row("LogNormal", {"loc": floats(1.0, 0.0), "scale": floats(0.5, 0.2)}, floats(0.5, 2.0),
    lambda S, loc, scale: S.lognorm(scale, scale=np.exp(loc)))
row("LogisticNormal", {"loc": np.array([[0.1, -0.5], [0.0, 1.0]]), "scale": np.array([[1.0, 0.5], [2.0,
                                                                                                   1.0]])},
    np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]))
row("InverseGamma", {"concentration": floats(3.0, 10.0), "rate": floats(1.0, 2.0)}, floats(0.5, 0.2),
    lambda S, concentration, rate: S.invgamma(concentration, scale=rate))
row("Gumbel", {"loc": floats(1.0, 0.0), "scale": floats(0.5, 2.0)}, floats(0.5, 2.0),
    lambda S, loc, scale: S.gumbel_r(loc, scale))
row("Weibull", {"scale": floats(1.0, 2.0), "concentration": floats(1.5, 3.0)}, floats(0.5, 2.0),
    lambda S, scale, concentration: S.weibull_min(concentration, scale=scale))
row("Pareto", {"scale": floats(1.0, 2.0), "alpha": floats(5.0, 3.0)}, floats(1.5, 2.1),
    lambda S, scale, alpha: S.pareto(alpha, scale=scale))
row("Kumaraswamy", {"concentration1": floats(1.5, 3.0), "concentration0": floats(2.0, 1.5)}, floats(0.5, 0.9))
row("GeneralizedPareto", {"loc": floats(0.0, 1.0, 1.0), "scale": floats(1.0, 2.0, 2.0),
                          "concentration": floats(0.2, -0.4, 0.0)}, floats(0.5, 2.0, 3.0),
    lambda S, loc, scale, concentration: S.genpareto(concentration, loc, scale))
row("VonMises", {"loc": floats(0.0, 1.0), "concentration": floats(0.5, 8.0)}, floats(0.5, 1.2))
row("Poisson", {"rate": floats(0.5, 30.0)}, floats(0.0, 28.0), lambda S, rate: S.poisson(rate), discrete=True)
row("Geometric", {"probs": floats(0.2, 0.7)}, floats(0.0, 4.0), lambda S, probs: S.geom(probs, loc=-1),
    discrete=True)
row("Geometric", {"logits": floats(-2.0, 0.7)}, floats(0.0, 4.0), discrete=True)
row("Binomial", {"total_count": floats(5.0, 5.0), "probs": floats(0.2, 0.7)}, floats(0.0, 4.0),
    lambda S, total_count, probs: S.binom(total_count, probs), discrete=True)
row("Binomial", {"total_count": 7, "logits": floats(0.2, -2.0)}, floats(3.0, 0.0), discrete=True)
row("NegativeBinomial", {"total_count": floats(5.0, 2.5), "probs": floats(0.2, 0.7)}, floats(0.0, 4.0),
    lambda S, total_count, probs: S.nbinom(total_count, 1 - probs), discrete=True)
row("NegativeBinomial", {"total_count": floats(5.0, 2.5), "logits": floats(-1.0, 0.7)}, floats(0.0, 4.0),
    discrete=True)
row("Multinomial", {"total_count": 4, "probs": np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])},
    np.array([[0.0, 1.0, 3.0], [4.0, 0.0, 0.0]]), discrete=True)
row("OneHotCategorical", {"probs": np.array([[0.1, 0.2, 0.7], [0.5, 0.4, 0.1]])},
    np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]), discrete=True)
row("OneHotCategoricalStraightThrough", {"logits": np.array([[0.1, 0.2, 0.7], [0.5, 0.4, 0.1]])},
    np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]), discrete=True)
row("ContinuousBernoulli", {"probs": floats(0.1, 0.5, 0.93)}, floats(0.3, 0.7, 0.9))
row("ContinuousBernoulli", {"logits": floats(-2.0, 3.0)}, floats(0.3, 0.7))
row("RelaxedBernoulli", {"temperature": floats(0.5), "probs": floats(0.1, 0.6)}, floats(0.3, 0.7))
row("RelaxedOneHotCategorical", {"temperature": floats(0.7), "logits": np.array([[0.1, 0.2, 0.7], [0.5, 0.4,
                                                                                                   0.1]])},
    np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]))
SPREAD = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.2], [0.1, -0.2, 0.7]])
BOTH = np.stack([SPREAD, 2 * SPREAD + np.eye(3)])
PLACE = np.array([[0.1, -1.0, 2.0], [0.0, 1.0, 0.5]])
row("MultivariateNormal", {"loc": PLACE[0], "covariance_matrix": SPREAD}, PLACE[1])
row("MultivariateNormal", {"loc": PLACE, "precision_matrix": SPREAD}, PLACE + 0.5)
row("MultivariateNormal", {"loc": PLACE, "scale_tril": np.linalg.cholesky(BOTH)}, PLACE - 0.5)
row("LowRankMultivariateNormal", {"loc": PLACE, "cov_factor": np.array([[0.5, 1.0], [-1.0, 0.2], [0.3, 0.3]]),
                                  "cov_diag": floats(0.5, 1.0, 2.0)}, PLACE + 1.0)
row("Wishart", {"df": floats(5.0, 7.5), "covariance_matrix": BOTH}, BOTH[::-1] * 3)
row("Wishart", {"df": floats(5.0), "precision_matrix": BOTH[:1]}, BOTH[1:] * 3)
row("LKJCholesky", {"dim": 3, "concentration": floats(0.7, 2.0)},
    np.linalg.cholesky(np.array([[1.0, 0.5, 0.1], [0.5, 1.0, -0.2], [0.1, -0.2, 1.0]])) * np.ones((2, 1, 1)))
