"""MultiheadAttention, which gives two results and so is no row of the layers' table."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import framework as fw

SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "no bias": {"bias": False},
    "batch first": {"batch_first": True},
    "further keys": {"add_bias_kv": True, "add_zero_attn": True},
    "other sizes": {"kdim": 3, "vdim": 5},
}


def made(**settings: Any) -> Any:
    fw.manual_seed(0)
    return fw.nn.MultiheadAttention(4, 2, **settings)


def inputs(kdim: int = 4, vdim: int = 4, batch_first: bool = False, **_: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    found = [rng.normal(size=(n, 2, d)).astype(np.float32) for n, d in ((3, 4), (5, kdim), (5, vdim))]
    return [x.swapaxes(0, 1).copy() for x in found] if batch_first else found


@pytest.mark.parametrize("name", SETTINGS)
def test_like_torch(name):
    torch = pytest.importorskip("torch")
    settings = SETTINGS[name]
    ours, theirs = made(**settings), torch.nn.MultiheadAttention(4, 2, **settings)
    state = {k: v.detach().numpy().copy() for k, v in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict(state)
    arrays = inputs(**settings)
    mask = np.triu(np.ones((3, 5), bool), 1)
    xs = [fw.tensor(a, requires_grad=True) for a in arrays]
    zs = [torch.tensor(a, requires_grad=True) for a in arrays]
    y, p = ours(*xs, attn_mask=fw.tensor(mask))
    z, q = theirs(*zs, attn_mask=torch.tensor(mask))
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-4, atol=1e-6)
    y.sum().backward()
    z.sum().backward()
    for a, b in zip([*xs, *ours.parameters()], [*zs, *theirs.parameters()]):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SETTINGS)
def test_is_the_function(name):
    settings = SETTINGS[name]
    layer, xs = made(**settings).double(), [fw.tensor(a).double() for a in inputs(**settings)]
    turned = [x.transpose(0, 1) for x in xs] if settings.get("batch_first") else xs
    separate = (
        {}
        if layer.in_proj_weight is not None
        else {
            "use_separate_proj_weight": True,
            "q_proj_weight": layer.q_proj_weight,
            "k_proj_weight": layer.k_proj_weight,
            "v_proj_weight": layer.v_proj_weight,
        }
    )
    want, weights = fw.nn.functional.multi_head_attention_forward(
        *turned,
        4,
        2,
        layer.in_proj_weight,
        layer.in_proj_bias,
        layer.bias_k,
        layer.bias_v,
        layer.add_zero_attn,
        0.0,
        layer.out_proj.weight,
        layer.out_proj.bias,
        **separate,
    )
    got, p = layer(*xs)
    if settings.get("batch_first"):
        want = want.transpose(0, 1)
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy())
    np.testing.assert_allclose(p.detach().numpy(), weights.detach().numpy())
    assert layer(*xs, need_weights=False)[1] is None


def test_a_query_without_keys_gets_zeros():
    layer, (q, k, v) = made(bias=False), [fw.tensor(a, requires_grad=True) for a in inputs()]
    y, p = layer(q, k, v, key_padding_mask=fw.tensor([[True] * 5, [False] * 5]))
    assert not y[:, 0].detach().numpy().any() and not p[0].detach().numpy().any()
    y.sum().backward()
    assert np.isfinite(q.grad.numpy()).all()


def test_copies_and_dropout():
    layer = made(dropout=0.5)
    arrays = [fw.tensor(a) for a in inputs()]
    want = layer.eval()(*arrays)[0].detach().numpy()
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        np.testing.assert_array_equal(twin(*arrays)[0].detach().numpy(), want)
    assert (layer.train()(*arrays)[0].detach().numpy() != want).any()


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: fw.nn.MultiheadAttention(5, 2), "embed_dim=5 does not divide into num_heads=2"),
        (
            lambda: made(batch_first=True)(fw.ones(1, 2, 4), fw.ones(2, 4), fw.ones(2, 4)),
            "must have it too",
        ),
    ],
)
def test_messages(call, text):
    with pytest.raises(ValueError, match=text):
        call()
