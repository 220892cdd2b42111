"""Transformers: masks, batches in front, wrong calls; values and gradients are rows of layer_rows.py."""

import warnings

import numpy as np
import pytest

import framework as fw
from framework import nn

SMALL = {"dim_feedforward": 6, "dropout": 0.0}


def model(**options):
    fw.manual_seed(0)
    return nn.Transformer(4, 2, 1, 1, **SMALL, **options)


def test_causal_mask_hides_what_comes_later():
    m, src, tgt = model(), fw.randn(5, 2, 4), fw.randn(3, 2, 4)
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    first = m(src, tgt, tgt_mask=mask)
    tgt[2] = 7.0
    again = m(src, tgt, tgt_mask=mask)
    assert fw.equal(first[:2], again[:2]) and not fw.equal(first[2], again[2])
    said = m(src, tgt, tgt_mask=mask, tgt_is_causal=True)
    assert fw.allclose(said, again, atol=1e-6)
    boolean = m(src, tgt, tgt_mask=fw.ones(3, 3, dtype=fw.bool).triu(1))
    assert fw.allclose(boolean, again, atol=1e-6)


def test_padding_is_not_attended_to():
    m, src, tgt = model(batch_first=True), fw.randn(2, 5, 4), fw.randn(2, 3, 4)
    pad = fw.tensor([[False, False, False, True, True]] * 2)
    whole = m(src, tgt, src_key_padding_mask=pad, memory_key_padding_mask=pad)
    assert fw.allclose(whole, m(src[:, :3], tgt), atol=1e-6)


def test_without_a_batch_and_in_either_order():
    src, tgt = fw.randn(5, 2, 4), fw.randn(3, 2, 4)
    want = model()(src, tgt)
    turned = model(batch_first=True)(src.transpose(0, 1), tgt.transpose(0, 1)).transpose(0, 1)
    assert fw.allclose(want, turned, atol=1e-6)
    assert fw.allclose(want[:, 1], model()(src[:, 1], tgt[:, 1]), atol=1e-6)


def test_every_parameter_learns_and_dropout_drops():
    m = nn.Transformer(4, 2, 1, 1, dim_feedforward=6, dropout=0.5)
    src, tgt = fw.randn(5, 2, 4), fw.randn(3, 2, 4)
    m(src, tgt).square().sum().backward()
    assert all(p.grad is not None for p in m.parameters())
    assert not fw.equal(m(src, tgt), m(src, tgt))
    m.eval()
    assert fw.equal(m(src, tgt), m(src, tgt))


def test_stacks_take_other_layers():
    encoder, decoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, **SMALL), 1), Constant()
    m = nn.Transformer(4, 2, custom_encoder=encoder, custom_decoder=decoder)
    assert m.encoder is encoder
    assert m(fw.randn(5, 2, 4), fw.randn(3, 2, 4)).shape == (5, 2, 4)
    layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, **SMALL), 3).layers
    parameters = [p for layer in layers for p in layer.parameters()]
    assert len({id(p) for p in parameters}) == len(parameters)


class Constant(nn.Module):
    def forward(self, tgt, memory, **options):
        return memory


@pytest.mark.parametrize("call, error, text", [
    (lambda: nn.TransformerEncoderLayer(4, 3), ValueError, "embed_dim=4 does not divide into num_heads=3"),
    (lambda: nn.TransformerEncoderLayer(4, 2, activation="tanh"), ValueError,
     "TransformerEncoderLayer: activation must be 'relu', 'gelu' or a function, got 'tanh'"),
    (lambda: model()(fw.ones(5, 2, 4), fw.ones(3, 4)), fw.errors.ShapeError,
     r"src and tgt must both be .* got src \[5, 2, 4\], tgt \[3, 4\]"),
    (lambda: model()(fw.ones(5, 2, 4), fw.ones(3, 1, 4)), fw.errors.ShapeError,
     r"the same batch \(dimension 1\), got src \[5, 2, 4\], tgt \[3, 1, 4\]"),
    (lambda: model()(fw.ones(5, 2, 4), fw.ones(3, 2, 5)), fw.errors.ShapeError,
     r"the last size of src and tgt must be d_model=4, got src \[5, 2, 4\], tgt \[3, 2, 5\]"),
])
def test_wrong_calls(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("causal", [False, True])
def test_masks_as_torch(causal):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (the compare extra brings it)")
    ours = model(batch_first=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.nn.Transformer(4, 2, 1, 1, batch_first=True, norm_first=True, **SMALL)
    theirs.encoder.layers[0].norm_first = theirs.decoder.layers[0].norm_first = False
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
    rng = np.random.default_rng(0)
    src, tgt = (rng.standard_normal((2, n, 4), dtype=np.float32) for n in (5, 3))
    pad = np.array([[False] * 5, [False, False, False, True, True]])
    found = []
    for M, m in ((fw, ours), (torch, theirs)):
        options = {"src_key_padding_mask": M.tensor(pad), "memory_key_padding_mask": M.tensor(pad)}
        if causal:
            options["tgt_mask"] = M.nn.Transformer.generate_square_subsequent_mask(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if M is torch else "error")
            found.append(m(M.tensor(src), M.tensor(tgt), **options).detach().numpy())
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-5)
