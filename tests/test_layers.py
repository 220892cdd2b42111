"""Every layer by its row: value, text, copies, and, where torch is installed, agreement with it."""

import copy
import inspect
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from layer_rows import ROWS, LayerRow
from test_cuda import cupy  # noqa: F401

import framework as fw
import framework.nn.functional as F
from framework import nn

# containers and bases have no forward of their own: test_module.py; two results: test_attention.py,
# test_rnn.py and test_lazy.py
NO_ROW = {"Container", "DataParallel", "NLLLoss2d", "Module", "ModuleList", "ModuleDict",
          "ParameterList", "ParameterDict", "MultiheadAttention", "AdaptiveLogSoftmaxWithLoss",
          "RNNBase", "RNNCellBase", "RNN", "LSTM", "GRU", "LSTMCell"}
each = pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)


def made(row: LayerRow) -> Any:
    fw.manual_seed(0)
    return row.make(fw).train(row.train)


def tensors(row: LayerRow, M: Any = fw, grad: bool = False) -> list[Any]:
    n = len(row.inputs) if row.trained < 0 else row.trained
    return [M.tensor(a, requires_grad=grad and i < n and a.dtype.kind == "f")
            for i, a in enumerate(row.inputs)]


def expected(row: LayerRow, layer: Any) -> np.ndarray:
    state = {k: v.clone() for k, v in layer.state_dict().items()}
    for k, b in layer.named_buffers():
        state.setdefault(k, b)
    if row.numpy:
        arrays = [a.astype(np.float64) for a in row.inputs]
        return np.asarray(row.reference({k: v.numpy() for k, v in state.items()}, *arrays))
    with fw.no_grad():
        return row.reference(F, state, *tensors(row)).numpy()


def test_every_layer_has_a_row() -> None:
    exported = {n for n, v in vars(nn).items() if inspect.isclass(v) and issubclass(v, nn.Module)}
    assert exported - NO_ROW == {r.name for r in ROWS}


@each
def test_value(row: LayerRow) -> None:
    layer = made(row)
    want = expected(row, layer)
    got = layer(*tensors(row)).detach().numpy()
    assert got.shape == want.shape
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)


@each
def test_pickle_and_deepcopy(row: LayerRow) -> None:
    layer = made(row)
    want = layer(*tensors(row)).detach().numpy()
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert repr(twin) == repr(layer)
        assert list(twin.state_dict()) == list(layer.state_dict())
        for a, b in zip(twin.parameters(), layer.parameters()):
            assert type(a) is nn.Parameter and a is not b and a.requires_grad == b.requires_grad
            np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
        assert twin(*tensors(row)).shape == want.shape


@each
def test_modes_and_double(row: LayerRow) -> None:
    layer = made(row)
    assert not layer.eval().training
    assert layer.train().training
    layer.double()
    out = layer.eval()(*[t.double() if t.dtype is fw.float32 else t for t in tensors(row)])
    assert out.dtype is fw.float64


@each
def test_same_as_torch(row: LayerRow) -> None:
    torch = pytest.importorskip("torch")
    if not row.torch:
        pytest.skip("not in torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = row.make(torch).train(row.train)
        ours = made(row)
        if row.same_text:
            assert repr(ours) == repr(theirs)
        state = {k: v.detach().numpy().copy() for k, v in theirs.state_dict().items()}
        assert [(k, v.shape) for k, v in ours.state_dict().items()] == [
            (k, tuple(v.shape)) for k, v in theirs.state_dict().items()]
        ours.load_state_dict(state)
        x, z = tensors(row, fw, row.grad), tensors(row, torch, row.grad)
        y, w = ours(*x), theirs(*z)
        near(y, w)
        if row.grad and w.requires_grad:
            g = np.random.default_rng(1).normal(size=w.shape).astype(np.float32)
            y.backward(fw.tensor(g))
            w.backward(torch.tensor(g))
            for a, b in zip([*x, *ours.parameters()], [*z, *theirs.parameters()]):
                assert (a.grad is None) == (b.grad is None)
                if b.grad is not None:
                    near(a.grad, b.grad)
    for (k, a), (_, b) in zip(ours.named_buffers(), theirs.named_buffers()):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6, err_msg=k)


def near(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name,args", [
    ("Linear", (40, 30)), ("Bilinear", (20, 5, 6)), ("Conv1d", (6, 8, 3)), ("Conv2d", (6, 8, 3)),
    ("ConvTranspose2d", (6, 8, 3)), ("Embedding", (50, 20))])
def test_starts_distributed_as_torch(name: str, args: tuple) -> None:
    torch = pytest.importorskip("torch")
    fw.manual_seed(1)
    torch.manual_seed(1)
    ours, theirs = getattr(nn, name)(*args), getattr(torch.nn, name)(*args)
    for (k, a), (_, b) in zip(ours.state_dict().items(), theirs.state_dict().items()):
        a, b = a.numpy(), b.numpy()
        assert abs(a.std() / b.std() - 1) < (0.15 if a.size > 100 else 0.7), k
        assert abs(np.abs(a).max() / np.abs(b).max() - 1) < 0.4, k


@pytest.mark.parametrize("name,shape,whole", [
    ("Dropout", (200, 50), ()), ("Dropout1d", (200, 50, 2), (2,)),
    ("Dropout2d", (200, 50, 2, 1), (2, 3)), ("Dropout3d", (200, 50, 1, 2, 1), (2, 3, 4))])
def test_dropout_in_training(name: str, shape: tuple, whole: tuple) -> None:
    fw.manual_seed(0)
    y = getattr(nn, name)(0.25)(fw.ones(shape)).numpy()
    np.testing.assert_allclose(np.unique(y), [0, 1 / 0.75], rtol=1e-6)
    assert abs((y == 0).mean() - 0.25) < 0.03
    if whole:
        assert (y == y.max(whole, keepdims=True)).all()


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    fw.manual_seed(0)
    y = nn.AlphaDropout(0.3)(fw.randn(300, 300)).numpy()
    assert abs(y.mean()) < 0.02
    assert abs(y.var() - 1) < 0.03


@pytest.mark.parametrize("layout", ["rows", "channels last"])
@pytest.mark.parametrize("kernel, stride, padding, dilation", [
    ((3, 2), (2, 1), (1, 1), (2, 1)), ((2, 3), (1, 2), (1, 1), (1, 1)), ((4, 4), (3, 2), (2, 2), (1, 2)),
    ((2, 2), (2, 2), (0, 1), (1, 1))])
def test_the_largest_lies_in_the_image(kernel, stride, padding, dilation, layout) -> None:
    """Also where all are as low as the padding around them: the first element inside; gradients go there."""
    size = 20, 7  # lines of more than a vector, and of fewer
    for height, width in (size, size[::-1]):
        low = -np.inf
        x = fw.from_numpy(np.random.default_rng(0).choice([low, low, 0.0, 1.0], (2, 3, height, width)))
        x[0, 0] = x[1, 2] = low
        if layout != "rows":
            x = x.contiguous(memory_format=fw.channels_last)
        x.requires_grad_()
        y, where = F.max_pool2d(x, kernel, stride, padding, dilation, return_indices=True)
        reached = np.zeros(x.shape)
        for n, c, i, j in np.ndindex(*y.shape):
            lines = range(i * stride[0] - padding[0], height, dilation[0])[:kernel[0]]
            places = range(j * stride[1] - padding[1], width, dilation[1])[:kernel[1]]
            inside = [u * width + v for u in lines for v in places if u >= 0 <= v]
            window = x.detach().numpy()[n, c].reshape(-1)[inside]
            first = inside[window.argmax()]
            assert y[n, c, i, j].item() == window.max() and where[n, c, i, j].item() == first
            reached[n, c].reshape(-1)[first] += 1
        for pooled in (y, F.max_pool2d(x, kernel, stride, padding, dilation)):
            (g,) = fw.autograd.grad(pooled, x, fw.ones_like(pooled))
            assert np.array_equal(g.numpy(), reached)


def test_return_indices_and_output_size() -> None:
    y, where = nn.MaxPool1d(2, return_indices=True)(fw.tensor([[[1.0, 3.0, 2.0, 0.0]]]))
    assert y.tolist() == [[[3.0, 2.0]]]
    assert where.tolist() == [[[1, 2]]]
    up = nn.ConvTranspose1d(1, 1, 3, stride=2)
    assert up(fw.ones(1, 1, 4), output_size=(10,)).shape == (1, 1, 10)
    with pytest.raises(ValueError, match="must be from"):
        up(fw.ones(1, 1, 4), output_size=(20,))


@pytest.mark.parametrize("call,error,text", [
    (lambda: nn.Dropout(1.5), ValueError, "probability"),
    (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "multiples of groups"),
    (lambda: nn.Conv2d(3, 4, 3, padding_mode="wrap"), ValueError, "padding_mode"),
    (lambda: nn.Conv2d(3, 4, 3, stride=2, padding="same"), ValueError, "stride=1"),
    (lambda: nn.Conv2d(3, 4, (1, 2, 3)), TypeError, "kernel_size"),
    (lambda: nn.BatchNorm2d(3)(fw.ones(2, 3)), ValueError, "(N, C, H, W)"),
    (lambda: nn.BatchNorm1d(3)(fw.ones(2, 4)), ValueError, "4 channels"),
    (lambda: nn.GroupNorm(3, 4), ValueError, "multiple"),
    (lambda: nn.Embedding(3, 2, padding_idx=3), ValueError, "padding_idx"),
    (lambda: nn.MSELoss(reduction="avg"), ValueError, "reduction"),
    (lambda: nn.Embedding.from_pretrained(fw.ones(3)), ValueError, "matrix"),
    (lambda: nn.Linear(3, 4)(fw.ones(2, 5)), ValueError, "5"),
    (lambda: nn.Parameter([1.0]), TypeError, "Tensor"),
    (lambda: nn.Parameter(fw.tensor([1])), RuntimeError, "floating"),
    (lambda: nn.Unflatten("a", (2,)), TypeError, "dim"),
])
def test_wrong_arguments(call: Any, error: type, text: str) -> None:
    with pytest.raises(error) as info:
        call()
    assert text in str(info.value)


def test_embedding_from_pretrained() -> None:
    table = fw.tensor([[1.0, 2.0], [3.0, 4.0]])
    layer = nn.Embedding.from_pretrained(table)
    assert not layer.weight.requires_grad
    assert layer(fw.tensor([1, 1])).tolist() == [[3.0, 4.0]] * 2
    assert nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad


def test_old_reduction_words() -> None:
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert nn.MSELoss(size_average=False).reduction == "sum"


def test_on_cuda(cupy: Any) -> None:  # noqa: F811
    """Layers, init, state and utils on a GPU (or the stand-in for CuPy): same values as on the CPU."""
    fw.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Flatten(), nn.Linear(16, 3), nn.LayerNorm(3))
    twin = copy.deepcopy(net).cuda()
    assert all(t.is_cuda for t in twin.state_dict().values())
    x, y = fw.randn(5, 1, 4, 4), fw.tensor([0, 1, 2, 0, 1])
    twin.register_full_backward_hook(lambda m, gi, go: None)
    for model, a, b in ((net, x, y), (twin, x.cuda(), y.cuda())):
        nn.CrossEntropyLoss()(model(a), b).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        nn.utils.clip_grad_value_(model.parameters(), 0.05)
    for p, q in zip(net.parameters(), twin.parameters()):
        assert q.grad.is_cuda
        np.testing.assert_allclose(q.grad.cpu().numpy(), p.grad.numpy(), rtol=1e-3, atol=1e-5)
    twin.load_state_dict(net.state_dict())
    assert twin[0].weight.is_cuda
    vector = nn.utils.parameters_to_vector(twin.parameters())
    nn.utils.vector_to_parameters(vector, twin.parameters())
    for name in ("uniform_", "normal_", "trunc_normal_", "ones_", "xavier_uniform_", "kaiming_normal_",
                 "orthogonal_", "eye_"):
        assert getattr(nn.init, name)(fw.empty(4, 3, device="cuda")).is_cuda
    nn.init.sparse_(fw.empty(4, 3, device="cuda"), 0.3)
    nn.init.dirac_(fw.empty(4, 3, 3, device="cuda"))
    assert nn.Embedding(3, 2, padding_idx=0, device="cuda").weight.cpu()[0].tolist() == [0.0, 0.0]
    assert pickle.loads(pickle.dumps(nn.Linear(2, 1, device="cuda"))).weight.is_cuda
    with pytest.raises(RuntimeError, match="different devices") as info:
        twin[:2](x)
    assert "in 0 (Conv2d)" in info.value.__notes__
    assert not twin.cpu()[0].weight.is_cuda


@pytest.mark.parametrize("call,error", [
    (lambda: nn.BatchNorm2d(3, eps=0.0), ValueError), (lambda: nn.HuberLoss(delta="a"), TypeError),
    (lambda: nn.LSTM(2, 3, bias=1), TypeError), (lambda: nn.GRU(2, 3, batch_first="no"), TypeError),
    (lambda: nn.CircularPad1d(1)(fw.ones(1, 1, 1, 3)), ValueError),
    (lambda: nn.CrossEntropyLoss(ignore_index=1)(fw.ones(2, 3), fw.ones(2, 3)), ValueError),
    (lambda: nn.GaussianNLLLoss()(fw.ones(4, 3), fw.ones(4, 3), fw.ones(2, 3)), ValueError),
])
def test_settings_that_pytorch_refuses(call: Any, error: type) -> None:
    with pytest.raises(error):
        call()


def test_batch_norm_of_nothing() -> None:
    m = nn.BatchNorm1d(2)
    x = fw.zeros(0, 2, 3, requires_grad=True)
    y = m(x)
    y.sum().backward()
    assert y.shape == x.grad.shape == (0, 2, 3) and m.weight.grad.tolist() == [0.0, 0.0]
    assert m.running_mean.tolist() == [0.0, 0.0] and m.running_var.tolist() == [1.0, 1.0]


def test_one_variance_for_all_samples() -> None:
    x, t, v = (np.random.default_rng(i).uniform(0.5, 2, s) for i, s in enumerate([(4, 3), (4, 3), (1, 3)]))
    loss = nn.GaussianNLLLoss()(fw.tensor(x), fw.tensor(t), fw.tensor(v))
    assert loss.item() == pytest.approx(((np.log(v) + (x - t) ** 2 / v) / 2).mean())


def test_ctc_gradient_is_that_of_the_definition() -> None:
    """With respect to log-probabilities as free variables; PyTorch's is only right behind a log_softmax."""
    scores = fw.randn(4, 1, 3, dtype=fw.float64, generator=fw.Generator().manual_seed(0))
    settings = (fw.tensor([[1, 2]]), fw.tensor([4]), fw.tensor([2]))
    for first in (lambda x: x, lambda x: x.log_softmax(-1)):
        assert fw.autograd.gradcheck(lambda x, f=first: F.ctc_loss(f(x), *settings, reduction="sum"),
                                     (scores.log_softmax(-1).detach().requires_grad_(),))
        assert fw.autograd.gradgradcheck(lambda x, f=first: F.ctc_loss(f(x), *settings, reduction="sum"),
                                         (scores.log_softmax(-1).detach().requires_grad_(),))
