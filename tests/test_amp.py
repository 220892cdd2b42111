"""Autocast: which operation runs in which dtype, what blocks do, gradients; and the scaling of losses."""

import gc
import threading
import warnings

import numpy as np
import pytest
from amp_rows import ROWS

import framework as fw
from framework.amp import GradScaler

pytest.importorskip("ml_dtypes", reason="bfloat16 needs the lowprecision extra")
B = fw.bfloat16
F = fw.nn.functional


@pytest.fixture(autouse=True)
def nothing_stays():
    yield
    assert not fw.is_autocast_enabled("cpu")


# -- which dtype -----------------------------------------------------------------------------------------

# where we differ: PyTorch converts the factors of its result, or takes no bfloat16 at all
DIFFERENT = {("batch_norm", "float64"), ("batch_norm eval", "float64")}


def tensors(M, shapes, mode):
    kinds = {
        "float32": ["float32"],
        "bfloat16": ["bfloat16"],
        "float64": ["float64"],
        "mixed": ["bfloat16"] + ["float32"] * len(shapes),
    }[mode] * len(shapes)
    rng = np.random.default_rng(0)
    return [
        M.tensor((rng.random(s) * 0.8 + 0.1).astype(np.float32)).to(getattr(M, kind))
        for s, kind in zip(shapes, kinds)
    ]


def result_dtype(M, call, shapes, mode, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = tensors(M, shapes, mode)
        with M.autocast("cpu", dtype=getattr(M, dtype)):
            out = call(M, *given)
    while isinstance(out, (tuple, list)):
        out = out[0]
    return str(out.dtype).partition(".")[2]


@pytest.mark.parametrize("mode", ["float32", "bfloat16", "mixed", "float64"])
@pytest.mark.parametrize("name", ROWS)
def test_dtypes_are_pytorchs(name, mode):
    torch = pytest.importorskip("torch", reason="tells which dtype its autocast gives")
    call, *shapes = ROWS[name]
    try:
        wanted = result_dtype(torch, call, shapes, mode, "bfloat16")
    except Exception as error:
        pytest.skip(f"PyTorch: {str(error)[:60]}")
    if (name, mode) in DIFFERENT:
        pytest.skip("we differ here")
    assert result_dtype(fw, call, shapes, mode, "bfloat16") == wanted


def test_float16_too():
    x, w = fw.rand(3, 4), fw.rand(5, 4)
    with fw.autocast("cpu", fw.float16):
        y = F.linear(x, w)
    assert y.dtype is fw.float16
    np.testing.assert_allclose(y.float().numpy(), x.numpy() @ w.numpy().T, rtol=3e-3)


# -- blocks ----------------------------------------------------------------------------------------------


def test_nested_blocks_and_what_holds_after_an_error():
    x = fw.ones(2, 2)
    with fw.autocast("cpu", B):
        assert fw.is_autocast_enabled("cpu") and (x @ x).dtype is B
        with fw.autocast("cpu", enabled=False):
            assert not fw.is_autocast_enabled("cpu") and (x @ x).dtype is fw.float32
            with fw.amp.autocast("cpu", dtype=fw.float16):
                assert (x @ x).dtype is fw.float16 and fw.get_autocast_dtype("cpu") is fw.float16
        with pytest.raises(ValueError, match="inside"), fw.autocast("cpu", fw.float16):
            raise ValueError("inside")
        with pytest.raises(RuntimeError):
            x @ fw.ones(3, 3)
        assert fw.is_autocast_enabled("cpu") and (x @ x).dtype is B
    assert (x @ x).dtype is fw.float32 and fw.get_autocast_dtype("cpu") is B


def test_one_block_entered_in_itself():
    block, x = fw.autocast("cpu"), fw.ones(2, 2)
    with block, block:
        pass
    with block:
        with block:
            assert (x @ x).dtype is B
        assert (x @ x).dtype is B
    assert (x @ x).dtype is fw.float32


def test_decorators():
    @fw.autocast("cpu")
    def product(x):
        """A product."""
        return x @ x

    @fw.autocast("cpu")
    def products(x):
        while True:
            yield x @ x

    x = fw.ones(2, 2)
    assert product(x).dtype is B and product.__doc__ == "A product." and product.__name__ == "product"
    source = products(x)
    assert next(source).dtype is B and (x @ x).dtype is fw.float32 and next(source).dtype is B


def test_names_imported_before_and_methods():
    from framework.nn.functional import linear, mse_loss

    x = fw.ones(2, 2)
    plain = linear.__code__
    with fw.autocast("cpu"):
        assert linear(x, x).dtype is x.matmul(x).dtype is x.__matmul__(x).dtype is fw.mm(x, x).dtype is B
        assert mse_loss(x.bfloat16(), x.bfloat16()).dtype is fw.float32
        assert fw.addmm(x, x, x, out=fw.zeros(2, 2)).dtype is fw.float32
    assert linear.__code__ is plain


def test_a_decorator_shared_by_threads_that_interleave():
    order = [threading.Event() for _ in range(3)]
    found = {}

    @fw.autocast("cpu")
    def work(name):
        if name == "first":
            order[0].set()
            assert order[1].wait(10)
        else:
            assert order[0].wait(10)
            order[1].set()
            assert order[2].wait(10)  # the first one has ended
        found[f"inside {name}"] = fw.is_autocast_enabled("cpu")

    def first():
        work("first")
        found["after first"] = fw.is_autocast_enabled("cpu")
        order[2].set()

    def second():
        with fw.autocast("cpu"):
            work("second")
            found["after second"] = fw.is_autocast_enabled("cpu")
    threads = [threading.Thread(target=target) for target in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"inside first": True, "after first": False, "inside second": True, "after second": True}


def test_a_thread_that_dies_inside_a_block_leaves_nothing_behind():
    from framework.node import Node

    before = Node.__init__

    def die():
        fw.autocast("cpu").__enter__()
        fw.autograd.set_detect_anomaly(True)
        assert Node.__init__ is not before
    thread = threading.Thread(target=die)
    thread.start()
    thread.join()
    del thread
    gc.collect()
    assert Node.__init__ is before and not fw.is_autocast_enabled("cpu")
    assert (fw.ones(2, 2) @ fw.ones(2, 2)).dtype is fw.float32


def test_other_threads_are_left_alone():
    x, found = fw.ones(2, 2), []
    with fw.autocast("cpu"):
        worker = threading.Thread(target=lambda: found.append(((x @ x).dtype, fw.is_autocast_enabled("cpu"))))
        worker.start()
        worker.join()
    assert found == [(fw.float32, False)]


def test_in_place_and_out_are_not_for_autocast():
    x, y = fw.full((2, 2), 1.001), fw.full((2, 2), 1.001)
    wanted, into = x + y @ y, fw.empty(2, 2)
    with fw.autocast("cpu"):
        z = x.clone().addmm_(y, y)
        fw.addmm(x, y, y, out=into)
        fw.matmul(y, y, out=(other := fw.empty(2, 2)))
    assert fw.equal(z, wanted) and fw.equal(into, wanted) and fw.equal(other, y @ y)


def test_questions_and_switches():
    assert (
        not fw.is_autocast_enabled("cpu") and not fw.is_autocast_enabled() and fw.is_autocast_cache_enabled()
    )
    assert fw.get_autocast_dtype("cuda") is fw.float16 and fw.amp.is_autocast_available("cpu")
    fw.set_autocast_dtype("cpu", fw.float16)
    try:
        with fw.autocast("cpu"):
            assert (fw.ones(1, 1) @ fw.ones(1, 1)).dtype is fw.float16
    finally:
        fw.set_autocast_dtype("cpu", B)
    fw.set_autocast_enabled("cpu", True)
    try:
        assert (fw.ones(1, 1) @ fw.ones(1, 1)).dtype is B
    finally:
        fw.set_autocast_enabled("cpu", False)
    with fw.autocast("cpu", cache_enabled=False):
        assert not fw.is_autocast_cache_enabled()
    assert fw.autocast_increment_nesting() == 1 and fw.autocast_decrement_nesting() == 0
    fw.clear_autocast_cache()


def test_errors_name_the_remedy():
    with pytest.raises(TypeError, match="x.device.type"):
        fw.autocast(fw.ones(1).device)
    with pytest.raises(RuntimeError, match="'cpu' or 'cuda', got 'gpu'"):
        fw.autocast("gpu")
    with pytest.raises(RuntimeError, match="without a number, 'cuda'"):
        fw.autocast("cuda:0")
    with pytest.raises(RuntimeError, match="dtype 'bf16' is not supported"):
        fw.autocast("cpu", "bf16")
    for given, text in (
        (("cuda",), "there is none for device_type='cuda'"),
        (("cpu", fw.float32), "bfloat16 or float16 on the CPU, got framework.float32"),
    ):
        with pytest.warns(UserWarning, match=text), fw.autocast(*given):
            assert not fw.is_autocast_enabled("cpu")
    with pytest.raises(RuntimeError, match="only for 'cpu'"):
        fw.set_autocast_enabled("cuda", True)


# -- casts of weights, gradients ---------------------------------------------------------------------------


def test_a_weight_is_cast_once_in_a_block():
    layer, x = fw.nn.Linear(3, 2, bias=False), fw.ones(4, 3)
    with fw.autocast("cpu"):
        first, second = layer(x), layer(x)
        assert first._node.edges[1] is second._node.edges[1]
        with fw.autocast("cpu"):
            assert layer(x)._node.edges[1] is first._node.edges[1]
        with fw.no_grad():
            layer(x)
        assert layer(x).requires_grad
        with fw.no_grad():
            layer.weight.fill_(1.0)
        assert layer(x).float().tolist() == [[3, 3]] * 4
    with fw.autocast("cpu"):
        assert layer(x)._node.edges[1] is not first._node.edges[1]
    with fw.autocast("cpu", cache_enabled=False):
        assert layer(x)._node.edges[1] is not layer(x)._node.edges[1]
    (first.float().sum() + second.float().sum()).backward()
    assert layer.weight.grad.dtype is fw.float32 and layer.weight.grad.tolist() == [[8] * 3] * 2


def network(M, seed=0):
    M.manual_seed(seed)
    n = M.nn
    return n.Sequential(
        n.Conv2d(2, 4, 3, padding=1),
        n.BatchNorm2d(4),
        n.ReLU(),
        n.MaxPool2d(2),
        n.Flatten(),
        n.Linear(36, 8),
        n.LayerNorm(8),
        n.GELU(),
        n.Linear(8, 3),
    )


def test_a_training_step_like_pytorchs():
    torch = pytest.importorskip("torch", reason="PyTorch's gradients: the compare extra")
    ours, theirs = network(fw), network(torch)
    theirs.load_state_dict({k: torch.from_numpy(v.numpy()) for k, v in ours.state_dict().items()})
    x, y = np.random.default_rng(0).normal(size=(5, 2, 6, 6)).astype(np.float32), np.arange(5) % 3
    found = []
    for M, model in ((fw, ours), (torch, theirs)):
        with M.autocast("cpu", dtype=M.bfloat16):
            out = model(M.from_numpy(x))
            loss = M.nn.functional.cross_entropy(out, M.from_numpy(y))
        assert out.dtype is M.bfloat16 and loss.dtype is M.float32
        loss.backward()
        found.append(
            [
                loss.detach().numpy(),
                *[p.grad.numpy() for p in model.parameters()],
                *[b.numpy() for b in model.buffers()],
            ]
        )
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=0.1, atol=0.03 * np.abs(b).max())


def test_backward_inside_of_the_block_and_twice():
    w, x = fw.rand(3, 3, requires_grad=True), fw.rand(3, 3)
    with fw.autocast("cpu"):
        y = ((x @ w) @ w).float().square().sum()
        (g,) = fw.autograd.grad(y, w, create_graph=True)
        assert g.dtype is fw.float32
        (h,) = fw.autograd.grad(g.square().sum(), w)
    z = ((x @ w) @ w).square().sum()
    (exact,) = fw.autograd.grad(z, w, create_graph=True)
    (second,) = fw.autograd.grad(exact.square().sum(), w)
    for a, b in ((g.detach(), exact.detach()), (h, second)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=0.05, atol=0.05 * float(b.abs().max()))


def test_checkpointed_calls_compute_the_same():
    from framework.utils.checkpoint import checkpoint

    fw.manual_seed(0)
    layer = fw.nn.Linear(4, 4)
    x = fw.rand(3, 4, requires_grad=True)
    grads = []
    for kept in (True, False):
        layer.zero_grad()
        x.grad = None
        with fw.autocast("cpu"):
            y = layer(x)  # casts the weight before
            y = layer(y.relu()) if kept else checkpoint(lambda t: layer(t.relu()), y)
            z = layer(y)
            assert z.dtype is B
        z.float().square().sum().backward()
        grads.append([layer.weight.grad.numpy(), layer.bias.grad.numpy(), x.grad.numpy()])
    for a, b in zip(*grads):
        np.testing.assert_allclose(a, b, rtol=0.05, atol=0.02 * np.abs(a).max())


def test_forward_mode_and_func():
    x, w, t = fw.rand(2, 3), fw.rand(4, 3), fw.rand(4, 3)
    with fw.autocast("cpu"):
        out, tangent = fw.func.jvp(lambda w: F.linear(x, w), (w,), (t,))
        assert out.dtype is tangent.dtype is B
        g = fw.func.grad(lambda w: F.linear(x, w).float().sum())(w)
    np.testing.assert_allclose(tangent.float().numpy(), x.numpy() @ t.numpy().T, rtol=0.05, atol=0.02)
    assert g.dtype is fw.float32


def test_functions_of_ones_own():
    seen = []

    class Product(fw.autograd.Function):
        @staticmethod
        @fw.amp.custom_fwd(device_type="cpu")
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x @ y

        @staticmethod
        @fw.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            seen.append(fw.is_autocast_enabled("cpu"))
            return g @ y.t(), x.t() @ g

    class Wide(Product):
        @staticmethod
        @fw.amp.custom_fwd(device_type="cpu", cast_inputs=fw.float32)
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            seen.append((x.dtype, fw.is_autocast_enabled("cpu")))
            return x @ y

    x = fw.rand(3, 3, requires_grad=True)
    with fw.autocast("cpu"):
        y = Product.apply(x, x)
        z = Wide.apply(x.bfloat16(), x)
    assert y.dtype is B and z.dtype is fw.float32
    y.sum().backward()
    z.sum().backward()
    Product.apply(x, x).sum().backward()
    assert seen == [(fw.float32, False), True, False, False]


def test_recurrent_layers_train():
    for name in ("RNN", "LSTM", "GRU"):
        layer = getattr(fw.nn, name)(3, 4, num_layers=2)
        packed = fw.nn.utils.rnn.pack_padded_sequence(fw.rand(5, 2, 3), [5, 3])
        with fw.autocast("cpu"):
            y = layer(fw.rand(5, 2, 3))[0]
            layer(packed)
            assert layer(fw.rand(5, 2, 3).bfloat16())[0].dtype is B
        assert y.dtype is (fw.float32 if name == "GRU" else B)
        y.float().sum().backward()
        assert all(p.grad.dtype is fw.float32 for p in layer.parameters())


# -- scaling ---------------------------------------------------------------------------------------------


def problem(**settings):
    w = fw.tensor([1.0, 2.0], requires_grad=True)
    return w, fw.optim.SGD([w], lr=0.5), GradScaler("cpu", **settings)


def test_a_step_is_that_without_scaling():
    w, optimizer, scaler = problem(init_scale=8.0)
    loss = scaler.scale((w * w).sum())
    assert loss.item() == 40.0
    loss.backward()
    assert w.grad.tolist() == [16, 32]
    scaler.unscale_(optimizer)
    assert w.grad.tolist() == [2, 4]
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [0, 0] and scaler.get_scale() == 8.0


def test_steps_with_inf_or_nan_are_left_out():
    for bad in (float("inf"), float("nan")):
        w, optimizer, scaler = problem(init_scale=8.0, growth_interval=2)
        scaler.scale((w * fw.tensor([1.0, bad])).sum()).backward()
        assert scaler.step(optimizer) is None and w.tolist() == [1, 2]
        scaler.update()
        assert scaler.get_scale() == 4.0
        for wanted in (4.0, 8.0):
            optimizer.zero_grad()
            scaler.scale(w.sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            assert scaler.get_scale() == wanted


def test_several_optimizers():
    w, first, scaler = problem()
    v = fw.ones(1, requires_grad=True)
    second = fw.optim.SGD([v], lr=1.0)
    scaler.scale((w * float("inf")).sum() + v.sum()).backward()
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert w.tolist() == [1, 2] and v.tolist() == [0] and scaler.get_scale() == 2.0**15


def test_scaling_like_pytorchs():
    torch = pytest.importorskip("torch", reason="PyTorch's scaler")
    rng = np.random.default_rng(0)
    factors = [float(f) for f in np.where(rng.random(60) < 0.15, np.inf, rng.random(60))]
    runs = []
    for M in (fw, torch):
        w = M.tensor([0.5, -1.0], requires_grad=True)
        optimizer = M.optim.SGD([w], lr=0.1, momentum=0.9)
        scaler = M.amp.GradScaler(
            "cpu", init_scale=1000.0, growth_factor=1.7, backoff_factor=0.3, growth_interval=3
        )
        seen = []
        for f in factors:
            optimizer.zero_grad()
            scaler.scale((w * w * f).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            seen.append((scaler.get_scale(), *w.tolist()))
        state = scaler.state_dict()
        runs.append((seen, state))
    assert runs[0][1] == runs[1][1]
    np.testing.assert_allclose(runs[0][0], runs[1][0], rtol=1e-6, atol=1e-7)


def test_misuse():
    w, optimizer, scaler = problem()
    for call in (lambda: scaler.step(optimizer), lambda: scaler.unscale_(optimizer), scaler.update):
        with pytest.raises(RuntimeError, match="before scale"):
            call()
    scaler.scale(w.sum()).backward()
    with pytest.raises(RuntimeError, match="no gradients were looked at"):
        scaler.update()
    with pytest.raises(RuntimeError, match="a closure is not supported"):
        scaler.step(optimizer, closure=lambda: None)
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="second time"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="between iterations"):
        import pickle

        pickle.dumps(scaler)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="second time"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"after step\(\)"):
        scaler.unscale_(optimizer)
    scaler.update()
    half = fw.ones(1, dtype=fw.float16, requires_grad=True)
    scaler.scale(half.sum()).backward()
    with pytest.raises(ValueError, match="float16"):
        scaler.unscale_(fw.optim.SGD([half], lr=0.1))
    with pytest.raises(ValueError, match="outputs must be"):
        scaler.scale(3)
    with pytest.raises(RuntimeError, match="no parameter"):
        scaler.step(fw.optim.SGD([fw.ones(1, requires_grad=True)], lr=0.1))
    for wrong in ({"growth_factor": 1.0}, {"backoff_factor": 1.0}):
        with pytest.raises(ValueError, match="factor must be"):
            GradScaler("cpu", **wrong)


def test_values_that_are_scaled():
    _, _, scaler = problem(init_scale=4.0)
    one, more = fw.ones(1), [fw.ones(2), (fw.ones(1),)]
    assert scaler.scale(one).item() == 4 and scaler.scale(more)[1][0].item() == 4
    assert isinstance(scaler.scale(tuple(more)), tuple)
    assert scaler.scale(fw.ones((), dtype=fw.float16)).dtype is fw.float32
    assert fw.amp.GradScaler("cpu", enabled=False).scale(one) is one
    with pytest.warns(UserWarning, match="device='cpu'"):
        assert not GradScaler().is_enabled()


def test_switched_off_it_is_not_there():
    w = fw.ones(1, requires_grad=True)
    optimizer, scaler = fw.optim.SGD([w], lr=0.5), GradScaler("cpu", enabled=False)

    def closure():
        optimizer.zero_grad()
        loss = scaler.scale(w.sum())
        loss.backward()
        return loss

    assert scaler.step(optimizer, closure).item() == 1
    scaler.unscale_(optimizer)
    scaler.update()
    assert w.item() == 0.5 and scaler.state_dict() == {} and scaler.get_scale() == 1.0
    scaler.load_state_dict({"scale": 3.0})


def test_state_goes_on_exactly(tmp_path):
    def train(scaler, w, optimizer, steps):
        for i in steps:
            optimizer.zero_grad()
            scaler.scale((w * (float("inf") if i % 4 == 3 else 1.1)).square().sum()).backward()
            scaler.step(optimizer)
            scaler.update()

    w, optimizer, scaler = problem(growth_interval=2, growth_factor=1.3)
    train(scaler, w, optimizer, range(6))
    fw.save({"w": w.detach(), "scaler": scaler.state_dict()}, tmp_path / "state")
    train(scaler, w, optimizer, range(6, 11))
    v, again, other = problem()
    saved = fw.load(tmp_path / "state")
    with fw.no_grad():
        v.copy_(saved["w"])
    other.load_state_dict(saved["scaler"])
    train(other, v, again, range(6, 11))
    assert fw.equal(v, w) and other.state_dict() == scaler.state_dict()
    with pytest.raises(RuntimeError, match="enabled=False"):
        other.load_state_dict({})
    with pytest.raises(KeyError, match="lacks"):
        other.load_state_dict({"scale": 1.0})
    scaler.update(new_scale=8.0)
    assert scaler.get_scale() == 8.0
    scaler.update(new_scale=fw.tensor(2.0))
    assert scaler.get_scale() == 2.0


def test_a_weight_with_other_memory_is_cast_anew():
    layer = fw.nn.Linear(2, 2)
    with fw.autocast("cpu"):
        layer(fw.ones(1, 2))
        layer.weight.data, layer.bias.data = fw.zeros(2, 2), fw.ones(2)
        assert layer(fw.ones(1, 2)).tolist() == [[1.0, 1.0]]
