"""Distributions against SciPy and PyTorch, samples against distribution functions, gradients of samples."""

import inspect

import numpy as np
import pytest
from distribution_rows import ROWS

import framework as fw

D = fw.distributions
IDS = [r.id for r in ROWS]
NEVER_BUILT = {"Distribution", "ExponentialFamily"}  # bases
ROWS_ELSEWHERE = {"Independent", "TransformedDistribution", "MixtureSameFamily"}  # have tests of their own
each_row = pytest.mark.parametrize("row", ROWS, ids=IDS)


def classes():
    found = {n: c for n, c in vars(D).items() if inspect.isclass(c) and issubclass(c, D.Distribution)}
    return {n: c for n, c in found.items() if n not in NEVER_BUILT}


def tensors(parameters, grad=False):
    """Tensors of float64 for arrays, numbers as they are."""
    made = {n: fw.tensor(v) if isinstance(v, np.ndarray) else v for n, v in parameters.items()}
    if grad:
        for v in made.values():
            if isinstance(v, fw.Tensor) and v.is_floating_point():
                v.requires_grad_()
    return made


def build(row, **settings):
    return getattr(D, row.name)(**tensors(row.parameters), **settings)


def build_torch(row, grad=False):
    torch = pytest.importorskip("torch")
    made = {n: torch.tensor(v, requires_grad=grad and v.dtype.kind == "f") if isinstance(v, np.ndarray) else v
            for n, v in row.parameters.items()}
    return getattr(torch.distributions, row.name)(**made), made


def close(got, want, rtol=1e-7, atol=1e-10):
    got = got.detach().numpy() if isinstance(got, fw.Tensor) else got
    want = want.detach().numpy() if hasattr(want, "detach") else np.asarray(want)
    assert got.shape == want.shape, f"shape {got.shape}, wanted {want.shape}"
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def test_every_distribution_has_a_row():
    missing = set(classes()) - {r.name for r in ROWS} - ROWS_ELSEWHERE
    assert not missing, f"tests/distribution_rows.py lacks {sorted(missing)}"


@each_row
def test_against_scipy(row):
    stats = pytest.importorskip("scipy.stats")
    if row.scipy is None:
        pytest.skip("SciPy has no such distribution")
    ours, theirs = build(row), row.scipy(stats, **row.parameters)
    value = fw.tensor(row.value)
    close(ours.log_prob(value), theirs.logpmf(row.value) if row.discrete else theirs.logpdf(row.value), 1e-6)
    for name, moment in (("mean", theirs.mean), ("variance", theirs.var)):
        close(getattr(ours, name) + fw.zeros(()), np.broadcast_to(moment(), ours.batch_shape), 1e-6)
    close(ours.stddev, np.broadcast_to(theirs.std(), ours.batch_shape), 1e-6)
    try:
        entropy = ours.entropy()
    except NotImplementedError:
        entropy = None
    if entropy is not None:
        close(entropy, np.broadcast_to(theirs.entropy(), ours.batch_shape), 1e-5)
    try:
        ours.cdf(value)
    except NotImplementedError:
        return
    close(ours.cdf(value), theirs.cdf(row.value), 1e-6)


@each_row
def test_against_torch(row):
    theirs, given = build_torch(row, grad=True)
    torch = pytest.importorskip("torch")
    made = tensors(row.parameters, grad=True)
    ours = getattr(D, row.name)(**made)
    assert ours.batch_shape == tuple(theirs.batch_shape) and ours.event_shape == tuple(theirs.event_shape)
    value = fw.tensor(row.value)
    got, want = ours.log_prob(value), theirs.log_prob(torch.tensor(row.value))
    close(got, want, 1e-6)
    got.sum().backward()
    want.sum().backward()
    for name, parameter in made.items():
        if isinstance(parameter, fw.Tensor) and given[name].grad is not None:
            close(parameter.grad, given[name].grad, 1e-5, 1e-8)
    for name in ("mean", "mode", "variance", "stddev"):
        try:
            want = getattr(theirs, name)
        except NotImplementedError:
            continue
        close(getattr(ours, name), want, 1e-6)
    for name in ("entropy", "perplexity"):
        try:
            want = getattr(theirs, name)()
        except NotImplementedError:
            continue
        close(getattr(ours, name)(), want, 1e-5)
    try:
        want = theirs.cdf(torch.tensor(row.value))
    except NotImplementedError:
        want = None
    if want is not None:
        if row.name in ("Gamma", "Chi2", "InverseGamma"):
            ours = build(row)
        got = ours.cdf(value)
        close(got, want, 1e-5, 1e-9)
        try:
            back = theirs.icdf(want)
        except NotImplementedError:
            back = None
        if back is not None:
            close(ours.icdf(fw.tensor(want.detach().numpy())), back, 1e-5)
    assert ours.has_rsample == theirs.has_rsample
    assert ours.has_enumerate_support == theirs.has_enumerate_support
    assert ours.support.event_dim == theirs.support.event_dim
    assert ours.support.is_discrete == theirs.support.is_discrete
    assert bool(ours.support.check(value).all())
    if theirs.has_enumerate_support:
        for expand in (True, False):
            close(ours.enumerate_support(expand), theirs.enumerate_support(expand))


@each_row
def test_shapes(row):
    ours = build(row)
    batch, event = ours.batch_shape, ours.event_shape
    fw.manual_seed(0)
    assert ours.sample().shape == (*batch, *event)
    sample = ours.sample((2, 3))
    assert sample.shape == (2, 3, *batch, *event) and not sample.requires_grad
    assert ours.sample((0,)).shape == (0, *batch, *event)
    assert bool(ours.support.check(sample).all())
    assert ours.log_prob(sample).shape == (2, 3, *batch)
    wide = ours.expand((4, *batch))
    assert wide.batch_shape == (4, *batch) and wide.event_shape == event and type(wide) is type(ours)
    assert wide.sample((2,)).shape == (2, 4, *batch, *event)
    once = ours.sample()
    close(wide.log_prob(once)[0], ours.log_prob(once).numpy(), 1e-6)
    if ours.has_rsample:
        assert ours.rsample((2,)).shape == (2, *batch, *event)
    assert type(ours).__name__ in repr(ours)
    single = {n: np.asarray(v, np.float32) if isinstance(v, np.ndarray) and v.dtype.kind == "f" else v
              for n, v in row.parameters.items()}
    narrow = getattr(D, row.name)(**tensors(single))
    drawn = narrow.sample((5,))
    assert drawn.dtype in (fw.float32, fw.int64)
    assert bool(fw.isfinite(narrow.log_prob(drawn)).all())


@each_row
def test_sampling(row):
    """Kolmogorov-Smirnov for one-dimensional laws with a distribution function, moments for the others."""
    stats = pytest.importorskip("scipy.stats")
    ours = build(row)
    fw.manual_seed(11)
    sample = ours.sample((4000,)).double()
    if ours.has_enumerate_support:
        values = ours.enumerate_support().double()
        chance = ours.log_prob(ours.enumerate_support()).exp()
        dims = tuple(range(-len(ours.event_shape), 0))
        for value, p in zip(values, chance):
            hit = sample == value
            hit = hit.all(dims) if dims else hit
            count = hit.double().sum(0)
            spread = (4000 * p * (1 - p)).sqrt()
            assert bool(((count - 4000 * p).abs() <= 4.5 * spread + 1e-9).all())
        return
    if row.scipy is not None and not row.discrete:
        theirs = row.scipy(stats, **row.parameters)
        u = theirs.cdf(sample.numpy())
        for column in u.reshape(4000, -1).T:
            assert stats.kstest(column, "uniform").pvalue > 1e-3
        return
    mean, variance = ours.mean.double(), ours.variance.double()
    slack = 5 * (variance / 4000).sqrt()
    inside = (sample.mean(0) - mean).abs() <= slack + 1e-6
    assert bool((inside | ~fw.isfinite(slack)).all()), (sample.mean(0), mean)


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="parameter scale"):
        D.Normal(0.0, -1.0)
    D.Normal(0.0, -1.0, validate_args=False)
    with pytest.raises(ValueError, match="low"):
        D.Uniform(1.0, 0.0)
    with pytest.raises(ValueError, match="support"):
        D.Gamma(1.0, 1.0).log_prob(fw.tensor(-1.0))
    with pytest.raises(ValueError, match="broadcast"):
        D.Normal(fw.zeros(3), 1.0).log_prob(fw.zeros(2))
    with pytest.raises(ValueError, match="must be a Tensor"):
        D.Normal(0.0, 1.0).log_prob(0.0)
    with pytest.raises(ValueError, match="exactly one"):
        D.Bernoulli()
    with pytest.raises(ValueError, match="exactly one"):
        D.Categorical(probs=fw.ones(2), logits=fw.ones(2))
    with pytest.raises(ValueError, match="numbers or Tensors"):
        D.Normal([0.0], 1.0)
    with pytest.raises(NotImplementedError, match="rsample"):
        D.Bernoulli(0.5).rsample()
    with pytest.raises(TypeError, match="write"):
        D.Normal(0.0, 1.0).sample(3)
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError):
        D.Distribution.set_default_validate_args(None)
    with pytest.warns(FutureWarning):
        assert D.Normal(0.0, 1.0).sample_n(2).shape == (2,)


def test_zero_size_batches():
    for d in (D.Normal(fw.zeros(0), 1.0), D.Gamma(fw.ones(0, 2), 1.0), D.Bernoulli(fw.zeros(0)),
              D.Categorical(fw.ones(0, 3)), D.Uniform(fw.zeros(0), 1.0)):
        assert d.log_prob(d.sample((3,))).shape == (3, *d.batch_shape)


def test_pathwise_gradients_of_gamma():
    """A sample moves with its quantile: du/da of the distribution function at the moving sample is 0."""
    special = pytest.importorskip("scipy.special")
    a = fw.tensor([0.05, 0.7, 3.0, 50.0, 2000.0, 3e5], dtype=fw.float64, requires_grad=True)
    fw.manual_seed(3)
    z = D.Gamma(a, 2.0).rsample()
    z.sum().backward()
    u, step = special.gammainc(a.tolist(), 2 * z.detach().numpy()), np.array(a.tolist()) * 1e-5
    numeric = (special.gammaincinv(a.tolist() + step, u) - special.gammaincinv(a.tolist() - step,
                                                                               u)) / (4 * step)
    close(a.grad, numeric, 1e-5, 1e-12)


def test_a_lazy_parameter_read_without_recording_can_still_be_differentiated():
    logits = fw.tensor([0.3], requires_grad=True)
    d = D.Bernoulli(logits=logits)
    with fw.no_grad():
        d.sample()
    d.probs.sum().backward()
    assert logits.grad is not None


def test_independent():
    base = D.Normal(fw.zeros(2, 3), fw.ones(2, 3))
    d = D.Independent(base, 1)
    assert (d.batch_shape, d.event_shape) == ((2,), (3,))
    x = d.rsample((4,))
    close(d.log_prob(x), base.log_prob(x).sum(-1).numpy())
    assert d.entropy().shape == (2,) and d.expand((5, 2)).sample().shape == (5, 2, 3)
    assert d.support.event_dim == 1 and d.has_rsample and not d.has_enumerate_support
    with pytest.raises(ValueError, match="reinterpreted_batch_ndims"):
        D.Independent(base, 3)
    with pytest.raises(NotImplementedError):
        D.Independent(D.Bernoulli(fw.ones(2)), 1).enumerate_support()
