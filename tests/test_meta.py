"""The meta device: shapes and dtypes without memory, through the shape rules of the records."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from table import ROWS, cast_inputs, flat, row_id, tensors

import framework as fw

F = fw.nn.functional
NEED_VALUES = 0.12  # of the samples: what looks at values, makes CPU tensors, or has no rule yet


def kind(x):
    return (tuple(x.shape), x.dtype, x.requires_grad) if isinstance(x, fw.Tensor) else type(x)


def test_every_row_of_the_table_has_the_same_shape_and_dtype_or_says_why_not():
    done, refused = 0, []
    for row in ROWS:
        for sample in row.samples[:3]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = [kind(x) for x in flat(sample.call(fw, *tensors(cast_inputs(sample, np.float32))))]
                try:
                    got = flat(sample.call(fw, *tensors(cast_inputs(sample, np.float32), device="meta")))
                except (fw.errors.DeviceError, fw.errors.DTypeError) as error:
                    assert "meta" in str(error)
                    refused.append(row_id(row))
                    continue
            assert [kind(x) for x in got] == want, row_id(row)
            done += 1
    assert done > 1400 and len(refused) < NEED_VALUES * done, sorted(set(refused))


def test_nothing_is_allocated_and_values_are_refused():
    x = fw.empty(1 << 20, 1 << 20, device="meta")
    y = (x @ x.T + 1).softmax(-1)
    assert y.shape == (1 << 20, 1 << 20) and y.is_meta and not (y.is_cuda or y.is_cpu)
    assert x.T.stride() == (1, 1 << 20) and x.nbytes == 1 << 42 and x.data_ptr() == 0
    assert str(y.device) == "meta" and fw.device("meta") == y.device and y.get_device() == -1
    assert repr(fw.empty(2, 3, dtype=fw.int32, device="meta")) == \
        "tensor(..., size=(2, 3), device='meta', dtype=framework.int32)"
    small = fw.ones(1, device="meta")
    for read in (small.item, small.tolist, small.numpy, small.cpu, lambda: bool(small), lambda: float(small),
                 lambda: pickle.dumps(small), lambda: np.asarray(small), lambda: fw.equal(small, small),
                 lambda: small[small > 0], small.nonzero, lambda: fw.full((2,), small)):
        with pytest.raises(fw.errors.DeviceError, match="meta device"):
            read()
    with pytest.raises(fw.errors.DeviceError, match="different devices .cpu, meta."):
        small + fw.ones(3)
    assert (small + fw.tensor(2.0)).is_meta  # a number's tensor goes anywhere, as on other devices
    with pytest.raises(fw.errors.ShapeError, match="broadcast"):
        fw.ones(3, device="meta") + fw.ones(2, device="meta")
    with pytest.raises(fw.errors.DeviceError, match="the only one is 'meta'"):
        fw.device("meta:1")
    with pytest.raises(ValueError, match="more bytes"):
        fw.empty(1 << 40, 1 << 40, device="meta")


def test_in_place_forms_views_and_copies():
    x = fw.zeros(2, 3, device="meta")
    version = x._version
    x.add_(1).mul_(x).copy_(fw.ones(2, 3)).normal_().fill_(2)
    x[0] = 5.0
    assert x._version > version and x.view(3, 2).is_meta and x.view(-1)._base is x
    with pytest.raises(fw.errors.ShapeError, match="view"):
        x.T.view(6)
    assert x.T.reshape(6).shape == (6,) and copy.deepcopy(x).is_meta and x.bfloat16().dtype is fw.bfloat16
    state = fw.get_rng_state()
    fw.rand(3, device="meta"), fw.randn(3, device="meta"), x.uniform_(), fw.randperm(4, device="meta")
    assert fw.equal(state, fw.get_rng_state())  # nothing is drawn


def test_modules_are_built_loaded_and_filled():
    def build():
        return fw.nn.Sequential(fw.nn.Conv2d(3, 8, 3), fw.nn.BatchNorm2d(8), fw.nn.ReLU(), fw.nn.MaxPool2d(2),
                                fw.nn.Dropout(), fw.nn.Flatten(), fw.nn.Linear(8 * 49, 10))

    with fw.device("meta"):
        net = build()
    big = fw.nn.Linear(1 << 20, 1 << 20, device="meta")
    assert big.weight.is_meta and sum(p.numel() for p in big.parameters()) == (1 << 40) + (1 << 20)
    x = fw.empty(4, 3, 16, 16, device="meta")
    assert net(x).shape == (4, 10) and net.eval()(x).is_meta and all(p.is_meta for p in net.parameters())
    with pytest.raises(fw.errors.DeviceError, match="to_empty"):
        net.to("cpu")
    real = build().eval()
    images = fw.randn(4, 3, 16, 16)
    assert net.load_state_dict(real.state_dict(), assign=True).missing_keys == []
    assert fw.equal(net(images), real(images))
    with fw.device("meta"):
        other = build()
    assert other.state_dict()["0.weight"].is_meta and other.to_empty(device="cpu")[0].weight.is_cpu
    other.load_state_dict(real.state_dict())
    assert fw.equal(other.eval()(images), real(images))
    assert real.to("meta")[0].weight.is_meta


@pytest.mark.parametrize("make, shapes", [
    (lambda: fw.nn.LSTM(3, 4), [(5, 2, 3)]), (lambda: fw.nn.GRU(3, 4), [(5, 2, 3)]),
    (lambda: fw.nn.MultiheadAttention(4, 2), [(5, 2, 4)] * 3), (lambda: fw.nn.GroupNorm(1, 3), [(2, 3, 4)]),
    (lambda: fw.nn.TransformerEncoderLayer(8, 2, 16), [(5, 2, 8)]),
    (lambda: fw.nn.Transformer(8, 2, 1, 1, 16), [(5, 2, 8), (4, 2, 8)]),
    (lambda: fw.nn.ConvTranspose2d(3, 4, 3, stride=2), [(2, 3, 5, 5)])])
def test_layers(make, shapes):
    want = flat(make()(*[fw.randn(s) for s in shapes]))
    with fw.device("meta"):
        got = flat(make()(*[fw.randn(s) for s in shapes]))
    assert [kind(x) for x in got] == [kind(x) for x in want] and all(x.is_meta for x in got)


@pytest.mark.parametrize("function", [
    fw.tanh, F.gelu, F.relu, lambda x: x * x[0] * 3, lambda x: x.exp().log(), lambda x: x.softmax(1),
    lambda x: x @ x.transpose(2, 3), lambda x: F.max_pool2d(x, 2), lambda x: fw.where(x > 0, x, 0.0),
    lambda x: x.view(4, -1)[:, 2:], lambda x: x.std(1), F.dropout, lambda x: fw.cat([x, x]),
    lambda x: F.cross_entropy(x[:, :, 0, 0], fw.zeros(4, dtype=fw.long, device="meta")),
    lambda x: fw.nn.BatchNorm2d(6, device="meta")(x), lambda x: fw.nn.Conv2d(6, 2, 3, device="meta")(x)])
def test_gradients_have_shapes(function):
    x = fw.empty(4, 6, 8, 8, device="meta", requires_grad=True)
    function(x).sum().backward()
    assert x.grad.is_meta and x.grad.shape == x.shape and x.grad.dtype is x.dtype


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam",
                                  "RMSprop", "ASGD", "Lion"])
def test_optimizers_step_on_the_meta_device(name):
    model = fw.nn.Linear(3, 2, device="meta")
    optimizer = getattr(fw.optim, name)(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(fw.ones(4, 3, device="meta")).sum().backward()
        optimizer.step()
    assert model.weight.is_meta and model.weight.shape == (2, 3)
    for state in optimizer.state.values():
        assert all(v.shape in ((2, 3), (2,), ()) for v in state.values() if isinstance(v, fw.Tensor))
