"""Nested tensors against each sequence alone, against PyTorch's, and what they refuse."""

import copy
import pickle

import numpy as np
import pytest

import framework as fw
from framework import nn
from framework.nn import functional as F

LENGTHS = (3, 1, 4, 3)


def sequences(*rest, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, *rest)) for n in LENGTHS]


def both(*rest, seed=0):
    """A nested tensor whose values require grad, and the sequences, each of which does."""
    parts = sequences(*rest, seed=seed)
    return (
        fw.nested.nested_tensor(parts, requires_grad=True),
        [fw.tensor(p, requires_grad=True) for p in parts],
    )


W, B, TABLE = fw.randn(6, 4).double(), fw.randn(6).double(), fw.randn(9, 4).double()
# a function of one sequence (or of the batch), and where it differs, of the sequences: values and gradients
SAME = {
    "add": lambda x: x + 1.5,
    "rsub": lambda x: 1 - x,
    "mul": lambda x: x * x.exp(),
    "div": lambda x: 1 / (x**2 + 1),
    "compare": lambda x: fw.where(x > 0, x, -x),
    "neg": lambda x: (-x).abs().sqrt(),
    "gelu": F.gelu,
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "linear": lambda x: F.linear(x, W, B),
    "matmul": lambda x: x @ W.t(),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "rms_norm": lambda x: F.rms_norm(x, (4,)),
    "softmax last": lambda x: x.softmax(-1),
    "log_softmax last": lambda x: F.log_softmax(x, -1),
    "sum last": lambda x: x.sum(-1),
    "mean keepdim": lambda x: x.mean(-1, keepdim=True),
    "var": lambda x: x.var(-1),
    "amax": lambda x: x.amax(-1),
    "row": lambda x: x * fw.arange(4.0).double(),
    "unflatten": lambda x: x.unflatten(-1, (2, 2)).sin(),
    "flatten": lambda x: x.unflatten(-1, (2, 2)).flatten(-2),
    "unsqueeze": lambda x: (x.unsqueeze(-1) * 2).squeeze(-1),
    "chunk": lambda x: x.chunk(2, -1)[1],
    "split": lambda x: x.split([1, 3], -1)[1] * 2,
    "cat": lambda x: fw.cat([x, x * 2], -1),
    "select": lambda x: x.select(-1, 1),
    "index": lambda x: x[..., 1:3],
    "module": nn.Linear(4, 3).double(),
    "masked_fill": lambda x: x.masked_fill(x > 0.5, 2.0),
    "float": lambda x: x.float().double(),
}
ALONG = {  # along the ragged dimension: dim 1 of the batch, dim 0 of a sequence
    "sum": lambda x, d: x.sum(d),
    "mean": lambda x, d: x.mean(d),
    "amax": lambda x, d: x.amax(d),
    "amin": lambda x, d: x.amin(d),
    "logsumexp": lambda x, d: x.logsumexp(d),
    "any": lambda x, d: (x > 0).any(d),
    "all": lambda x, d: (x > 0).all(d),
    "mean of both": lambda x, d: x.mean((d, d + 1)),
    "sum keepdim": lambda x, d: x.sum(d, keepdim=True),
}


def compare(found, expected, x, parts):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-12)
    if not found[0].requires_grad:
        return
    weights = [fw.tensor(np.cos(np.arange(b.numel())).reshape(b.shape)) for b in expected]
    sum((a * w).sum() for a, w in zip(found, weights)).backward()
    sum((b * w).sum() for b, w in zip(expected, weights)).backward()
    for g, p in zip(x.grad.unbind(), parts):
        np.testing.assert_allclose(g.numpy(), p.grad.numpy(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", SAME)
def test_what_works_on_elements_and_within_them(name):
    x, parts = both(4)
    y = SAME[name](x)
    assert y.is_nested and y.layout is fw.jagged
    compare(list(y.unbind()), [SAME[name](p) for p in parts], x, parts)


@pytest.mark.parametrize("name", ALONG)
def test_what_works_along_the_ragged_dimension(name):
    x, parts = both(4)
    compare(list(ALONG[name](x, 1)), [ALONG[name](p, 0) for p in parts], x, parts)


@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
def test_softmax_of_each_sequence(function):
    x, parts = both(4)
    compare(list(function(x, 1).unbind()), [function(p, 0) for p in parts], x, parts)


def test_two_nested_operands_and_rows_of_the_batch():
    x, parts = both(4)
    y = fw.nested.nested_tensor(sequences(4, seed=1))
    each = fw.randn(4, 1, 4).double()
    compare(
        list((x * y + each - fw.cat([x, y], -1)[..., :4]).unbind()),
        [p * q + e - p for p, q, e in zip(parts, y.unbind(), each)],
        x,
        parts,
    )
    longer = fw.cat([x, y], 1)
    assert longer.lengths().tolist() == [2 * n for n in LENGTHS]
    for a, p, q in zip(longer.unbind(), parts, y.unbind()):
        np.testing.assert_array_equal(a.detach(), fw.cat([p.detach(), q]))
    assert fw.cat([x, y]).lengths().tolist() == [*LENGTHS, *LENGTHS]
    other = fw.nested.nested_tensor([fw.ones(2, 4)] * 4)
    with pytest.raises(fw.errors.ShapeError, match="lengths must be equal"):
        x + other


@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_each_sequence(causal):
    parts = [sequences(2, 3, seed=i) for i in range(3)]
    xs = [fw.nested.nested_tensor(p, requires_grad=True) for p in parts]
    alone = [[fw.tensor(s, requires_grad=True) for s in p] for p in parts]
    out = F.scaled_dot_product_attention(*[x.transpose(1, 2) for x in xs], is_causal=causal).transpose(1, 2)
    assert out.shape == xs[0].shape
    expected = [
        F.scaled_dot_product_attention(*[s.transpose(0, 1) for s in row], is_causal=causal).transpose(0, 1)
        for row in zip(*alone)
    ]
    compare(list(out.unbind()), expected, xs[0], alone[0])
    for x, p in zip(xs[1:], alone[1:]):
        for g, s in zip(x.grad.unbind(), p):
            np.testing.assert_allclose(g.numpy(), s.grad.numpy(), rtol=1e-8, atol=1e-10)
    keys = fw.nested.nested_tensor([fw.randn(n, 5).double() for n in (2, 2, 5, 1)])
    query = fw.nested.nested_tensor(sequences(5))
    crossed = F.scaled_dot_product_attention(query, keys, keys)
    for a, q, k in zip(crossed.unbind(), query.unbind(), keys.unbind()):
        np.testing.assert_allclose(a, F.scaled_dot_product_attention(q[None], k[None], k[None])[0], rtol=1e-9)


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_recurrent_layers(kind):
    x, parts = both(4)
    module = kind(4, 3, bidirectional=True).double()
    y, last = nn.utils.ragged.recurrent(module, x)
    each = [module(p[:, None]) for p in parts]
    compare(list(y.unbind()), [out[:, 0] for out, _ in each], x, parts)
    h = last[0] if kind is nn.LSTM else last
    for i, (_, own) in enumerate(each):
        np.testing.assert_allclose(h[:, i].detach(), (own[0] if kind is nn.LSTM else own)[:, 0].detach())


def test_losses_and_embeddings():
    x, parts = both(4)
    target = fw.nested.nested_tensor([fw.arange(n) % 4 for n in LENGTHS])
    loss = F.cross_entropy(x, target)
    assert loss.item() == pytest.approx(F.cross_entropy(fw.cat(parts), target.values()).item())
    assert F.cross_entropy(x, target, reduction="none").lengths().tolist() == list(LENGTHS)
    assert F.mse_loss(x, x * 2).item() == pytest.approx((x.values() ** 2).mean().item())
    words = F.embedding(target, TABLE)
    assert words.shape[2] == 4 and fw.equal(words.values(), TABLE[target.values()])


def test_to_and_from_padded_and_packed():
    x, parts = both(4)
    padded, lengths = nn.utils.ragged.to_padded(x, -1.0)
    assert padded.shape == (4, 4, 4) and lengths.tolist() == list(LENGTHS)
    expected = nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=-1.0)
    np.testing.assert_array_equal(padded.detach(), expected.detach())
    compare(list(padded), list(expected), x, parts)
    back = nn.utils.ragged.from_padded(padded, lengths)
    assert fw.equal(back, x) and fw.equal(nn.utils.ragged.from_packed(nn.utils.ragged.to_packed(x)), x)
    assert nn.utils.ragged.mask(x).sum().item() == sum(LENGTHS)
    assert x.to_padded_tensor(0.0, (5, 6, 4)).shape == (5, 6, 4)
    with pytest.raises(fw.errors.ShapeError, match="longest sequence has 4"):
        x.to_padded_tensor(0.0, (4, 3, 4))
    some = fw.nested.narrow(
        padded.detach(), 1, fw.tensor([1, 0, 2, 0]), fw.tensor([2, 0, 2, 1]), layout=fw.jagged
    )
    assert some.lengths().tolist() == [2, 0, 2, 1] and fw.equal(some[2], padded[2, 2:4])
    gaps = fw.nested.nested_tensor_from_jagged(fw.arange(6), fw.tensor([0, 3, 6]), lengths=fw.tensor([1, 2]))
    assert gaps.tolist() == [[0], [3, 4]]


def test_what_it_is():
    x, _ = both(4)
    assert x.is_nested and not fw.ones(2).is_nested and x.ndim == 3 and len(x) == 4 and x.numel() == 44
    assert x.shape[0] == 4 and x.shape[2] == x.size(2) == 4 and x.size(1) == (x + 1).size(1)
    assert x.size(1) != fw.nested.nested_tensor([fw.ones(2, 4)]).size(1) and x.size(1) != 3
    assert x.transpose(1, 2).shape[1] == 4 and x.transpose(1, 2).values().shape == (4, 11)
    assert fw.equal(x[2], x.unbind()[2]) and fw.equal(x[:, 0][1], x[1][0]) and fw.equal(x[:, -1][3], x[3][-1])
    assert x.requires_grad and not x.detach().requires_grad and (x * 2).grad_fn is not None
    assert "requires_grad=True" in repr(x) and "offsets=[0, 3, 4, 8, 11]" in repr(x)
    for copied in (copy.deepcopy(x), pickle.loads(pickle.dumps(x.detach()))):
        assert fw.equal(copied, x)
    a = fw.ones(2, requires_grad=True)
    (fw.nested.as_nested_tensor([a, a * 2]) * 3).values().sum().backward()
    assert a.grad.tolist() == [9, 9]
    y = x.detach().clone()
    y += 1
    y.mul_(2)
    assert fw.allclose(y, (x + 1) * 2)
    assert x.reshape(4, -1, 2, 2).shape[2:] == (2, 2)


def test_what_is_refused():
    x, _ = both(4)
    for call, words in [
        (lambda: x.cumsum(1), "to_padded_tensor"),
        (lambda: fw.linalg.inv(x), "to_padded_tensor"),
        (lambda: x.sum(0), "to_padded_tensor"),
        (lambda: x @ x, "scaled_dot_product"),
        (lambda: x.permute(1, 0, 2), "stays in front"),
        (lambda: x.var(1), "to_padded_tensor"),
    ]:
        with pytest.raises(NotImplementedError, match=words):
            call()
    with pytest.raises(fw.errors.LayoutError, match="unbind"):
        x.detach().numpy()
    with pytest.raises(fw.errors.ShapeError, match="first size only"):
        fw.nested.nested_tensor([fw.ones(2, 3), fw.ones(2, 4)])
    with pytest.raises(ValueError, match="offsets must rise"):
        fw.nested.nested_tensor_from_jagged(fw.ones(4), fw.tensor([0, 3, 2]))
    with pytest.raises(ValueError, match="add up"):
        fw.nested.nested_tensor_from_jagged(fw.ones(4), lengths=fw.tensor([1, 2]))


@pytest.mark.filterwarnings("ignore")
def test_against_pytorch():
    torch = pytest.importorskip("torch")
    parts = sequences(4)
    ours = fw.nested.nested_tensor(parts)
    theirs = torch.nested.nested_tensor([torch.tensor(p) for p in parts], layout=torch.jagged)
    for f in (
        lambda M, x: x * 2 + 1,
        lambda M, x: x.sin().relu(),
        lambda M, x: M.nn.functional.gelu(x),
        lambda M, x: x.sum(1),
        lambda M, x: x.sum(-1),
        lambda M, x: x.mean(1),
        lambda M, x: x.softmax(-1),
        lambda M, x: x.softmax(1),
        lambda M, x: M.nn.functional.layer_norm(x, (4,)),
        lambda M, x: x.amax(1),
        lambda M, x: M.cat([x, x], -1),
        lambda M, x: x.chunk(2, -1)[0],
        lambda M, x: x.unflatten(-1, (2, 2)),
        lambda M, x: x.transpose(1, 2),
        lambda M, x: M.nested.to_padded_tensor(x, 7.0),
    ):
        a, b = f(fw, ours), f(torch, theirs)
        assert a.is_nested == b.is_nested
        if a.is_nested:
            assert a.offsets().tolist() == b.offsets().tolist()
            a, b = a.values(), b.values()
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9)
    q = fw.nested.nested_tensor(sequences(2, 3)).transpose(1, 2)
    p = torch.nested.nested_tensor([torch.tensor(s) for s in sequences(2, 3)], layout=torch.jagged).transpose(
        1, 2
    )
    a = F.scaled_dot_product_attention(q, q, q).transpose(1, 2).values()
    b = torch.nn.functional.scaled_dot_product_attention(p, p, p).transpose(1, 2).values()
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9)
