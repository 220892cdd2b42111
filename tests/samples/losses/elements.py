"""Rows of ops/losses/elements.py and ops/losses/distances.py."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..base import Sample, integers, normal, positive, rng, row
from ..reduce.softmax import log_softmax

X, Y = normal(3, 4), normal(3, 4, seed=1)
PROBS = rng(2).uniform(0.1, 0.9, size=(3, 4))
BITS = (rng(3).random((3, 4)) < 0.5).astype(float)
SIGNS = np.where(rng(4).random((3, 4)) < 0.5, 1.0, -1.0)
NO_BROADCAST = "PyTorch broadcasts prediction and target, here that is an error"


def F(M: Any) -> Any:
    """nn.functional of either library."""
    return M.nn.functional


def reduced(losses: Any, reduction: str) -> Any:
    """The three reductions in NumPy."""
    return {"none": lambda: losses, "sum": losses.sum, "mean": losses.mean}[reduction]()


def pointwise(name: str, reference: Any, inputs: tuple, variants: dict | None = None,
              extra: tuple = (), errors: tuple = (), torch_grad: bool = True,
              torch_mean: bool = True) -> None:
    """A row: each reduction, each variant of settings, 0-dim inputs, shapes that do not match.

    torch_grad: whether PyTorch has derivatives for all inputs; if not, only values are compared.
    torch_mean: False where PyTorch warns of its own "mean".
    """
    def call(M: Any, *tensors: Any, **settings: Any) -> Any:
        return getattr(F(M), name)(*tensors, **settings)
    samples = [Sample(r, lambda M, *t, r=r: call(M, *t, reduction=r), inputs,
                      lambda *a, r=r: reduced(reference(*a), r), torch=torch_mean or r != "mean")
               for r in ("none", "sum", "mean")]
    samples += [Sample(label, lambda M, *t, s=settings: call(M, *t, **s), inputs,
                       lambda *a, s=settings: reference(*a, **s).mean())
                for label, settings in (variants or {}).items()]
    if not extra:
        samples.append(Sample("scalar", call, tuple(i[0, 0] for i in inputs), reference))
        samples.append(Sample("empty", lambda M, *t: call(M, *t, reduction="sum"),
                              tuple(np.zeros((0, 2)) for i in inputs), lambda *a: np.zeros(())))
    if not torch_grad:
        like_torch = [replace(s, label=f"{s.label} value", grad=False) for s in samples]
        samples = like_torch + [replace(s, torch=False, why="not differentiable there") for s in samples]
    count = len(inputs)
    row(name, *samples, *extra, namespace="nn.functional", errors=[
        ("shapes", lambda M: call(M, *[M.ones(3, 1)] * (count - 1), M.ones(3)), RuntimeError,
         "not broadcast here"),
        ("reduction", lambda M: call(M, *[M.ones(2)] * count, reduction="avg"), ValueError,
         "reduction must be"),
        ("not a tensor", lambda M: call(M, *[M.ones(2)] * (count - 1), 1.0), TypeError, "must be a Tensor"),
        *errors])


def weighted(name: str, reference: Any) -> tuple:
    """Samples of the ``weight`` argument: a weighted mean."""
    w = positive(3, 4)

    def call(M: Any, x: Any, t: Any, w: Any, **settings: Any) -> Any:
        return getattr(F(M), name)(x, t, weight=w, **settings)
    return (Sample("weight", call, (X, Y, w),
                   lambda x, t, w: (reference(x, t) * w).sum() / w.sum()),
            Sample("weight sum", lambda M, x, t, w: call(M, x, t, w, reduction="sum"), (X, Y, w),
                   lambda x, t, w: (reference(x, t) * w).sum()))


def _smooth(x: Any, t: Any, beta: float = 1.0) -> Any:
    d = np.abs(x - t)
    return d if beta == 0 else np.where(d < beta, d * d / (2 * beta), d - beta / 2)


def _huber(x: Any, t: Any, delta: float = 1.0) -> Any:
    d = np.abs(x - t)
    return np.where(d <= delta, d * d / 2, delta * (d - delta / 2))


def _mse(x: Any, t: Any) -> Any:
    return (x - t) ** 2


def _l1(x: Any, t: Any) -> Any:
    return np.abs(x - t)


pointwise("mse_loss", _mse, (X, Y), extra=weighted("mse_loss", _mse))
pointwise("l1_loss", _l1, (X, Y), extra=weighted("l1_loss", _l1))
pointwise("smooth_l1_loss", _smooth, (X, Y), {"beta": {"beta": 0.4}, "beta 0": {"beta": 0.0}}, errors=(
    ("beta", lambda M: F(M).smooth_l1_loss(M.ones(2), M.ones(2), beta=-1.0), ValueError, "beta"),))
pointwise("huber_loss", _huber, (X, Y), {"delta": {"delta": 0.4}}, errors=(
    ("delta", lambda M: F(M).huber_loss(M.ones(2), M.ones(2), delta=0.0), ValueError, "delta"),))
pointwise("soft_margin_loss", lambda x, t: np.logaddexp(0, -t * x), (X, SIGNS), torch_grad=False)


def _bce(x: Any, t: Any, weight: Any = 1.0) -> Any:
    with np.errstate(divide="ignore"):
        return -weight * (t * np.maximum(np.log(x), -100) + (1 - t) * np.maximum(np.log(1 - x), -100))


def _bce_logits(x: Any, t: Any, weight: Any = 1.0, pos_weight: Any = 1.0) -> Any:
    return weight * (pos_weight * t * np.logaddexp(0, -x) + (1 - t) * np.logaddexp(0, x))


W = positive(4)
pointwise(
    "binary_cross_entropy", _bce, (PROBS, rng(5).uniform(size=(3, 4))),
    extra=(Sample("weight", lambda M, x, t, w: F(M).binary_cross_entropy(x, t, w),
                  (PROBS, 0.9 * BITS + 0.05, W), lambda x, t, w: _bce(x, t, w).mean(), order=1, torch=False,
                  why="PyTorch has no derivative for weight"),
           Sample("bounds", lambda M, x, t: F(M).binary_cross_entropy(x, t, reduction="none"),
                  (np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0, 0.0])), _bce, grad=False,
                  why="the log is limited there"),),
    errors=(("logits", lambda M: F(M).binary_cross_entropy(M.ones(2) * 3, M.ones(2)), ValueError,
             "probabilities in [0, 1]"),
            ("targets", lambda M: F(M).binary_cross_entropy(M.ones(2) / 2, M.ones(2) * 3), ValueError,
             "target must lie in [0, 1]")))
pointwise(
    "binary_cross_entropy_with_logits", _bce_logits, (X, rng(5).uniform(size=(3, 4))),
    extra=(Sample("weight", lambda M, x, t, w: F(M).binary_cross_entropy_with_logits(x, t, w),
                  (X, BITS, W), lambda x, t, w: _bce_logits(x, t, w).mean(), torch=False,
                  why="PyTorch has no derivative for weight"),
           Sample("pos_weight",
                  lambda M, x, t, p: F(M).binary_cross_entropy_with_logits(x, t, pos_weight=p),
                  (X, BITS, W), lambda x, t, p: _bce_logits(x, t, 1.0, p).mean(), torch=False,
                  why="PyTorch has no derivative for pos_weight"),
           Sample("factors", lambda M, x, t, w, p: F(M).binary_cross_entropy_with_logits(
               x, t, w, pos_weight=p), (X, BITS, W, positive(4, seed=2)),
               lambda x, t, w, p: _bce_logits(x, t, w, p).mean(), grad=False),
           Sample("large", lambda M, x: F(M).binary_cross_entropy_with_logits(
               x, M.nn.functional.relu(x.detach().sign()), reduction="none"),
               (np.array([-1e4, -100.0, 100.0, 1e4]),),
               lambda x: _bce_logits(x, (x > 0).astype(float)), order=1,
               why="differences see no curvature")))


def _kl(x: Any, t: Any, log_target: bool = False) -> Any:
    if log_target:
        return np.exp(t) * (t - x)
    return np.where(t > 0, t * np.log(np.where(t > 0, t, 1)), 0) - t * x


pointwise("kl_div", _kl, (log_softmax(X), PROBS), torch_mean=False, extra=(
    Sample("log_target", lambda M, x, t: F(M).kl_div(x, t, log_target=True, reduction="batchmean"), (X, Y),
           lambda x, t: _kl(x, t, True).sum() / 3),
    Sample("batchmean", lambda M, x, t: F(M).kl_div(x, t, reduction="batchmean"), (X, PROBS),
           lambda x, t: _kl(x, t).sum() / 3),
    Sample("zeros", lambda M, x: F(M).kl_div(
        x, M.tensor(BITS, dtype=x.dtype, device=x.device), reduction="sum"), (X,),
           lambda x: _kl(x, BITS).sum())))


def _poisson(x: Any, t: Any, log_input: bool = True, full: bool = False, eps: float = 1e-8) -> Any:
    out = np.exp(x) - t * x if log_input else x - t * np.log(x + eps)
    if full:
        out = out + np.where(t > 1, t * np.log(t) - t + 0.5 * np.log(2 * np.pi * t), 0)
    return out


pointwise("poisson_nll_loss", _poisson, (positive(3, 4), positive(3, 4, seed=1) * 2), {
    "rates": {"log_input": False}, "full": {"full": True}})


def _gauss(x: Any, t: Any, v: Any, full: bool = False, eps: float = 1e-6) -> Any:
    v = np.maximum(v, eps)
    return 0.5 * (np.log(v) + (x - t) ** 2 / v) + (0.5 * np.log(2 * np.pi) if full else 0.0)


def _gaussian(M: Any, *tensors: Any, **settings: Any) -> Any:
    return F(M).gaussian_nll_loss(*tensors, **settings)


row("gaussian_nll_loss",
    *[Sample(r, lambda M, *t, r=r: _gaussian(M, *t, reduction=r), (X, Y, positive(3, 4)),
             lambda *a, r=r: reduced(_gauss(*a), r)) for r in ("none", "sum", "mean")],
    Sample("full", lambda M, *t: _gaussian(M, *t, full=True), (X, Y, positive(3, 1)),
           lambda *a: _gauss(*a, full=True).mean()),
    Sample("one variance per row", _gaussian, (X, Y, positive(3)),
           lambda x, t, v: _gauss(x, t, v[:, None]).mean()),
    Sample("number", lambda M, x, t: _gaussian(M, x, t, 0.5), (X, Y),
           lambda x, t: _gauss(x, t, np.full((3, 4), 0.5)).mean()),
    namespace="nn.functional", errors=[
        ("negative", lambda M: _gaussian(M, M.ones(2), M.ones(2), -M.ones(2)), ValueError, "negative"),
        ("var", lambda M: _gaussian(M, M.ones(2), M.ones(2), M.ones(3)), RuntimeError, "var of shape"),
        ("shapes", lambda M: _gaussian(M, M.ones(2, 1), M.ones(2), M.ones(2)), RuntimeError,
         "not broadcast")])

# -- over classes --------------------------------------------------------------------------------


def nll(x: Any, t: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Any:
    """Negative log-likelihood by a plain loop."""
    if x.ndim == 1:
        out = nll(x[None], t[None], weight, ignore_index, reduction)
        return out[0] if reduction == "none" else out
    losses, total = np.zeros(t.shape), 0.0
    for at in np.ndindex(*t.shape):
        if t[at] != ignore_index:
            w = 1.0 if weight is None else weight[t[at]]
            losses[at] = -w * x[(at[0], t[at], *at[1:])]
            total += w
    return losses.sum() / total if reduction == "mean" else reduced(losses, reduction)


def ce(x: Any, t: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
       label_smoothing: float = 0.0) -> Any:
    """Cross entropy of class numbers, smoothed, by a plain loop."""
    logp = log_softmax(x, 0 if x.ndim == 1 else 1)
    hard = nll(logp, t, weight, ignore_index, reduction)
    if not label_smoothing:
        return hard
    c = x.shape[1]
    weights = np.ones(c) if weight is None else weight
    soft, total = np.zeros(t.shape), 0.0
    for at in np.ndindex(*t.shape):
        if t[at] != ignore_index:
            soft[at] = -sum(weights[k] * logp[(at[0], k, *at[1:])] for k in range(c)) / c
            total += weights[t[at]]
    soft = soft.sum() / total if reduction == "mean" else reduced(soft, reduction)
    return (1 - label_smoothing) * hard + label_smoothing * soft


def soft_ce(x: Any, t: Any, weight: Any = None, label_smoothing: float = 0.0,
            reduction: str = "mean") -> Any:
    """Cross entropy of class probabilities."""
    axis = 0 if x.ndim == 1 else 1
    c = x.shape[axis]
    t = t * (1 - label_smoothing) + label_smoothing / c
    w = np.ones(c) if weight is None else weight
    w = w.reshape((-1,) + (1,) * (x.ndim - axis - 1))
    return reduced(-(w * t * log_softmax(x, axis)).sum(axis=axis), reduction)


SCORES, CLASSES = normal(5, 3), integers(5, high=3)
SOME = np.array([0, -100, 2, 1, -100])
IMAGE, IMAGE_CLASSES = normal(2, 3, 2, 2), integers(2, 2, 2, high=3)
CW = positive(3)
_HARD: list[tuple] = [
    ("plain", SCORES, CLASSES, {}), ("sum", SCORES, CLASSES, {"reduction": "sum"}),
    ("none", SCORES, CLASSES, {"reduction": "none"}), ("ignored", SCORES, SOME, {}),
    ("ignored none", SCORES, SOME, {"reduction": "none"}),
    ("ignore_index", SCORES, CLASSES, {"ignore_index": 1}),
    ("weight", SCORES, CLASSES, {"weight": CW}), ("weight ignored", SCORES, SOME, {"weight": CW}),
    ("weight none", SCORES, SOME, {"weight": CW, "reduction": "none"}),
    ("one sample", SCORES[0], CLASSES[0], {}), ("one none", SCORES[0], CLASSES[0], {"reduction": "none"}),
    ("images", IMAGE, IMAGE_CLASSES, {}), ("images weight", IMAGE, IMAGE_CLASSES, {"weight": CW}),
    ("images none", IMAGE, IMAGE_CLASSES, {"reduction": "none"}),
    ("one class", normal(3, 1), np.zeros(3, np.int64), {}),
    ("empty", np.zeros((0, 3)), np.zeros(0, np.int64), {"reduction": "sum"})]


def _class_sample(name: str, label: str, x: Any, t: Any, settings: dict, reference: Any) -> Sample:
    def call(M: Any, x: Any, t: Any) -> Any:
        ready = {k: M.tensor(v, dtype=x.dtype, device=x.device) if isinstance(v, np.ndarray) else v
                 for k, v in settings.items()}
        return getattr(F(M), name)(x, t, **ready)
    return Sample(label, call, (x, np.asarray(t)), lambda x, t: reference(x, t, **settings))


def _class_errors(name: str) -> list:
    def call(M: Any, *args: Any, **settings: Any) -> Any:
        return getattr(F(M), name)(*args, **settings)
    return [("class", lambda M: call(M, M.zeros(2, 3), M.tensor([0, 3])), IndexError,
             "target[1] is class 3, but there are 3 classes"),
            ("negative", lambda M: call(M, M.zeros(2, 3), M.tensor([-1, 0])), IndexError, "class -1"),
            ("shape", lambda M: call(M, M.zeros(2, 3), M.tensor([0])), RuntimeError, "target of"),
            ("dtype", lambda M: call(M, M.zeros(2, 3), M.zeros(2)), TypeError, "class numbers"),
            ("weight", lambda M: call(M, M.zeros(2, 3), M.tensor([0, 1]), weight=M.ones(2)), RuntimeError,
             "one number per class"),
            ("reduction", lambda M: call(M, M.zeros(2, 3), M.tensor([0, 1]), reduction="avg"), ValueError,
             "reduction"),
            ("scalar", lambda M: call(M, M.tensor(1.0), M.tensor(0)), RuntimeError, "needs a target")]


row("nll_loss", *[_class_sample("nll_loss", *s, nll) for s in _HARD], namespace="nn.functional",
    errors=_class_errors("nll_loss"))
T = np.exp(log_softmax(normal(5, 3, seed=9)))
TI = np.exp(log_softmax(normal(2, 3, 2, 2, seed=9), 1))
_SMOOTH: list[tuple] = [
    ("smooth", SCORES, CLASSES, {"label_smoothing": 0.2}),
    ("smooth weight", SCORES, CLASSES, {"label_smoothing": 0.2, "weight": CW}),
    ("smooth ignored", SCORES, SOME, {"label_smoothing": 0.2, "weight": CW}),
    ("smooth none", SCORES, SOME, {"label_smoothing": 0.2, "reduction": "none"}),
    ("smooth images", IMAGE, IMAGE_CLASSES, {"label_smoothing": 0.2, "reduction": "sum"})]
_SOFT: list[tuple] = [
    ("probabilities", SCORES, T, {}), ("probabilities none", SCORES, T, {"reduction": "none"}),
    ("probabilities one", SCORES[0], T[0], {}), ("probabilities images", IMAGE, TI, {}),
    ("probabilities weight", SCORES, T, {"weight": CW}),
    ("probabilities smooth", SCORES, T, {"label_smoothing": 0.3, "reduction": "sum"})]
row("cross_entropy", *[_class_sample("cross_entropy", *s, ce) for s in _HARD + _SMOOTH],
    *[_class_sample("cross_entropy", *s, soft_ce) for s in _SOFT], namespace="nn.functional",
    errors=[*_class_errors("cross_entropy"),
            ("smoothing", lambda M: F(M).cross_entropy(M.zeros(2, 3), M.tensor([0, 1]), label_smoothing=2.0),
             ValueError, "label_smoothing")])

# -- over distances ------------------------------------------------------------------------------


def norm(x: Any, p: float = 2.0, axis: int = -1, keepdims: bool = False) -> Any:
    """The p-norm along an axis."""
    return np.linalg.norm(x, ord=p, axis=axis, keepdims=keepdims)


def _cos(a: Any, b: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    a, b = np.broadcast_arrays(a, b)
    return (a * b).sum(axis=dim) / (np.maximum(norm(a, 2, dim), eps) * np.maximum(norm(b, 2, dim), eps))


row("cosine_similarity",
    *[Sample(f"dim {d}", lambda M, a, b, d=d: F(M).cosine_similarity(a, b, dim=d), (X, Y),
             lambda a, b, d=d: _cos(a, b, d)) for d in (0, 1, -1)],
    Sample("broadcast", lambda M, a, b: F(M).cosine_similarity(a, b), (X, normal(1, 4)), _cos),
    Sample("broadcast along", lambda M, a, b: F(M).cosine_similarity(a, b), (X, normal(3, 1)), _cos),
    namespace="nn.functional", errors=[
        ("dim", lambda M: F(M).cosine_similarity(M.ones(2), M.ones(2)), IndexError, "dim=1"),
        ("integers", lambda M: F(M).cosine_similarity(M.arange(3), M.arange(3), 0), TypeError, "floating"),
        ("shapes", lambda M: F(M).cosine_similarity(M.ones(2, 3), M.ones(2, 2)), RuntimeError, "broadcast")])
row("pairwise_distance",
    *[Sample(f"p {p}", lambda M, a, b, p=p: F(M).pairwise_distance(a, b, p), (X, Y),
             lambda a, b, p=p: norm(a - b + 1e-6, p)) for p in (1.0, 2.0, 3.0, float("inf"))],
    Sample("p 0", lambda M, a, b: F(M).pairwise_distance(a, b, 0.0), (X, Y),
           lambda a, b: norm(a - b + 1e-6, 0), grad=False),
    Sample("keepdim", lambda M, a, b: F(M).pairwise_distance(a, b, keepdim=True), (X, normal(4)),
           lambda a, b: norm(a - b + 1e-6, keepdims=True)),
    Sample("vectors", lambda M, a, b: F(M).pairwise_distance(a, b, eps=0.1), (X[0], Y[0]),
           lambda a, b: norm(a - b + 0.1)),
    namespace="nn.functional", errors=[
        ("scalars", lambda M: F(M).pairwise_distance(M.tensor(1.0), M.tensor(2.0)), RuntimeError,
         "at least 1 dimension")])
row("normalize",
    *[Sample(f"p {p}", lambda M, x, p=p: F(M).normalize(x, p), (X,),
             lambda x, p=p: x / norm(x, p, 1, True)) for p in (1.0, 2.0, 3.0)],
    Sample("dim", lambda M, x: F(M).normalize(x, dim=0), (X,), lambda x: x / norm(x, 2, 0, True)),
    Sample("zeros", lambda M, x: F(M).normalize(x * 0.0), (X,), lambda x: x * 0, torch=False,
           why="zero vectors get the gradient 1 / eps"),
    namespace="nn.functional", errors=[
        ("dim", lambda M: F(M).normalize(M.ones(2)), IndexError, "dim=1"),
        ("integers", lambda M: F(M).normalize(M.arange(3), dim=0), TypeError, "floating")])
pointwise("margin_ranking_loss",
          lambda a, b, t, margin=0.0: np.maximum(0, -t * (a - b) + margin), (X, Y, SIGNS),
          {"margin": {"margin": 0.7}})
pointwise("hinge_embedding_loss",
          lambda x, t, margin=1.0: np.where(t == 1, x, np.maximum(0, margin - x)), (X, SIGNS),
          {"margin": {"margin": 0.3}}, extra=(
    Sample("scalar", lambda M, x, t: F(M).hinge_embedding_loss(x, t), (X[0, 0], SIGNS[0, 0]),
           lambda x, t: np.where(t == 1, x, np.maximum(0, 1 - x))),))


def _cosine_loss(a: Any, b: Any, t: Any, margin: float = 0.0) -> Any:
    cos = _cos(a, b, -1)
    return np.where(t == 1, 1 - cos, np.maximum(0, cos - margin))


row("cosine_embedding_loss",
    *[Sample(r, lambda M, a, b, r=r: F(M).cosine_embedding_loss(
        a, b, M.tensor(SIGNS[:, 0], device=a.device), reduction=r), (X, Y),
        lambda a, b, r=r: reduced(_cosine_loss(a, b, SIGNS[:, 0]), r))
      for r in ("none", "sum", "mean")],
    Sample("margin", lambda M, a, b: F(M).cosine_embedding_loss(
        a, b, -M.ones(3, device=a.device), margin=0.2),
           (X, Y), lambda a, b: _cosine_loss(a, b, -np.ones(3), 0.2).mean()),
    Sample("vectors", lambda M, a, b: F(M).cosine_embedding_loss(a, b, M.tensor(1.0, device=a.device)),
           (X[0], Y[0]), lambda a, b: _cosine_loss(a, b, np.ones(())).mean()),
    namespace="nn.functional", errors=[
        ("target", lambda M: F(M).cosine_embedding_loss(M.ones(3, 2), M.ones(3, 2), M.ones(2)), RuntimeError,
         "wanted inputs (N, D)"),
        ("shapes", lambda M: F(M).cosine_embedding_loss(M.ones(3, 2), M.ones(1, 2), M.ones(3)), RuntimeError,
         "not broadcast")])


def _triplet(a: Any, p: Any, n: Any, margin: float = 1.0, swap: bool = False) -> Any:
    far = norm(a - n + 1e-6)
    if swap:
        far = np.minimum(far, norm(p - n + 1e-6))
    return np.maximum(0, norm(a - p + 1e-6) - far + margin)


_THREE = (X, Y, normal(3, 4, seed=5))
row("triplet_margin_loss",
    *[Sample(r, lambda M, *t, r=r: F(M).triplet_margin_loss(*t, reduction=r), _THREE,
             lambda *a, r=r: reduced(_triplet(*a), r)) for r in ("none", "sum", "mean")],
    Sample("margin", lambda M, *t: F(M).triplet_margin_loss(*t, margin=2.5), _THREE,
           lambda *a: _triplet(*a, margin=2.5).mean()),
    Sample("swap", lambda M, *t: F(M).triplet_margin_loss(*t, swap=True), _THREE,
           lambda *a: _triplet(*a, swap=True).mean()),
    namespace="nn.functional", errors=[
        ("shapes", lambda M: F(M).triplet_margin_loss(M.ones(3, 2), M.ones(3, 2), M.ones(1, 2)), RuntimeError,
         "not broadcast")])
