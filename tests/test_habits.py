"""What programs of PyTorch do by habit: questions that are mostly answered False, old names and old words."""

import importlib

import pytest

import framework as fw
from framework.config import names

F = fw.nn.functional


def test_kinds_of_tensors():
    x = fw.ones(2)
    assert x.is_cpu and x.layout is fw.strided and isinstance(x.layout, fw.layout) and not x.is_meta
    for name in ("is_quantized", "is_mkldnn", "is_mps", "is_xpu", "is_ipu", "is_xla", "is_vulkan",
                 "is_sparse", "is_sparse_csr", "is_nested"):
        assert getattr(x, name) is False
    assert repr(fw.strided) == "framework.strided" and fw.legacy_contiguous_format is fw.contiguous_format
    assert fw.typename(x) == "framework.FloatTensor" and fw.typename([]) == "list" and fw.get_device(x) == -1
    assert fw.typename(fw.nn.Linear).endswith("Linear") and x[fw.newaxis].shape == (1, 2)
    with pytest.raises(RuntimeError, match="on the CPU"):
        x.record_stream(None)


def test_as_subclass_shares_memory_and_graph():
    class Mine(fw.Tensor):
        pass

    x = fw.ones(2, requires_grad=True)
    mine = x.as_subclass(Mine)
    (mine * 2).sum().backward()
    assert type(mine) is Mine and mine.data_ptr() == x.data_ptr() and x.grad.tolist() == [2, 2]
    with pytest.raises(TypeError, match="subclass of Tensor"):
        x.as_subclass(int)


def test_resize():
    x = fw.arange(4)
    assert x.resize_(2, 1) is x and x.tolist() == [[0], [1]]
    assert x.resize_(3, 2).shape == (3, 2) and x[0].tolist() == [0, 1]
    assert x.resize_as_(fw.ones(1)).tolist() == [0] and x.resize_(0).numel() == 0
    with pytest.raises(RuntimeError, match="requires grad"):
        fw.ones(2, requires_grad=True).resize_(1)
    with pytest.raises(ValueError, match="not be negative"):
        x.resize_(-1)


def test_set():
    """Other memory: of a tensor, a part of it, a storage, none."""
    x, y = fw.arange(6.0), fw.zeros(0)
    assert y.set_(x, 1, (2, 2)) is y and y.tolist() == [[1, 2], [3, 4]]
    y.fill_(9)
    assert x.tolist() == [0, 9, 9, 9, 9, 5]
    assert y.set_(x.untyped_storage()).tolist() == x.tolist() and y.data_ptr() == x.data_ptr()
    assert y.set_().shape == (0,)
    w = fw.ones(2, requires_grad=True)
    loss = (w * y.set_(x, 0, (2,))).sum()
    y.add_(1)  # seen by the version counter, also through the other tensor
    with pytest.raises(RuntimeError, match="changed"):
        loss.backward()
    for call, error in (
        (lambda: fw.zeros(2).set_(x.double()), fw.errors.DTypeError),
        (lambda: fw.zeros(2).set_(x, 5, (2,)), fw.errors.ShapeError),
        (lambda: fw.zeros(2).set_([1]), TypeError),
        (lambda: w.set_(x), RuntimeError),
    ):
        with pytest.raises(error):
            call()


def test_hints_of_makers_of_tensors():
    for make in (fw.zeros, fw.rand, fw.arange, fw.eye):
        assert make(2, layout=fw.strided, pin_memory=False).shape[0] == 2
    assert fw.zeros_like(fw.ones(2), layout=fw.strided).tolist() == [0, 0]
    assert fw.ones(2).new_full((1,), 3, layout=fw.strided).tolist() == [3]
    with pytest.raises(ValueError, match="to_sparse"):
        fw.zeros(2, layout=fw.sparse_coo)
    with pytest.raises(TypeError, match="unexpected keyword"):
        fw.zeros(2, layoutt=fw.strided)


def test_copies_keep_the_order_of_dimensions_in_memory():
    x = fw.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)
    for y in (x.clone(), fw.empty_like(x), fw.rand_like(x), x.to(fw.float32, copy=True), x.detach().clone()):
        assert y.stride() == x.stride() == (1, 12, 4) and y.data_ptr() != x.data_ptr()
    assert x[::2].clone().stride() == (1, 6, 2) and (x[::2].clone() == x[::2]).all()
    assert x.clone(memory_format=fw.contiguous_format).stride() == (6, 3, 1)
    assert fw.empty_strided((2, 3), (1, 2)).stride() == (1, 2)
    assert fw.empty_permuted((2, 3, 4), (0, 2, 1)).stride() == (12, 1, 3)
    y = x.clone().requires_grad_()
    (y.clone() * x).sum().backward()
    assert (y.grad == x).all()


def test_range_has_its_end():
    with pytest.warns(UserWarning, match="arange"):
        assert fw.range(0, 2, 0.5).tolist() == [0, 0.5, 1, 1.5, 2]
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="lead"):
        fw.range(2, 0)


def test_next_bfloat16():
    pytest.importorskip("ml_dtypes")
    x = fw.ones(1, dtype=fw.bfloat16, requires_grad=True)
    y = fw.nextafter(x, fw.zeros(1, dtype=fw.bfloat16))
    y.sum().backward()
    assert y.item() == 1 - 2**-8 and x.grad.item() == 1


def test_module_load():
    x, y = fw.zeros(2), fw.ones(2, requires_grad=True)
    assert x.module_load(y, assign=True).data_ptr() == y.data_ptr()
    assert x.module_load(y).data_ptr() == x.data_ptr() and x.tolist() == [1, 1]


def test_autocast_by_device():
    assert fw.get_autocast_gpu_dtype() is fw.float16 and fw.get_autocast_cpu_dtype() is fw.bfloat16
    with fw.autocast("cpu", fw.float16):
        assert fw.is_autocast_cpu_enabled() and fw.get_autocast_cpu_dtype() is fw.float16
    assert not fw.is_autocast_cpu_enabled()


@pytest.mark.parametrize("words, reduction", [({"size_average": False}, "sum"),
                                              ({"size_average": True}, "mean"),
                                              ({"reduce": False}, "none"), ({"reduce": True}, "mean")])
@pytest.mark.parametrize("loss", ["mse_loss", "l1_loss", "cross_entropy", "binary_cross_entropy", "kl_div"])
def test_old_words_for_reduction(words, reduction, loss):
    x, y = fw.rand(2, 3), fw.rand(2, 3)
    with pytest.warns(UserWarning, match=f"use reduction='{reduction}'"):
        got = getattr(F, loss)(x, y, **words)
    assert (got == getattr(F, loss)(x, y, reduction=reduction)).all()
    assert F.mse_loss(x, y, size_average=None, reduce=None) == F.mse_loss(x, y)
    with pytest.raises(TypeError, match="no_such"):
        F.mse_loss(x, y, no_such=1)


def test_where_we_refuse_programs_of_pytorch_are_warned(monkeypatch):
    x = fw.rand(2, 3)
    for wrong in (lambda: F.softmax(x), lambda: F.mse_loss(x, fw.zeros(3))):
        with pytest.raises((TypeError, ValueError)):
            wrong()
    monkeypatch.setattr(names, "package", "torch")
    for name in ("softmax", "log_softmax"):
        for t, dim in ((x, 1), (x[0], 0), (x[None], 0)):
            with pytest.warns(UserWarning, match="dim is chosen"):
                assert (getattr(F, name)(t) == getattr(F, name)(t, dim=dim)).all()
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "soft_margin_loss",
                 "poisson_nll_loss"):
        with pytest.warns(UserWarning, match="are broadcast"):
            got = getattr(F, name)(x, fw.zeros(3))
        assert got == getattr(F, name)(x, fw.zeros(2, 3))
    with pytest.warns(UserWarning, match="are broadcast"):
        got = F.gaussian_nll_loss(x[:, None], x[None], fw.ones(2, 2, 3))
    assert got.item() == pytest.approx(((x[:, None] - x[None]) ** 2 / 2).mean().item())
    with pytest.raises(ValueError):
        F.binary_cross_entropy(x, fw.zeros(3))


def test_places_of_utils_data():
    from framework.utils import dlpack, hooks, model_zoo
    places = {"dataloader": "DataLoader default_collate", "dataset": "Dataset Subset random_split",
              "distributed": "DistributedSampler", "sampler": "Sampler BatchSampler RandomSampler"}
    for place, found in places.items():
        module = importlib.import_module(f"framework.utils.data.{place}")
        for name in found.split():
            assert getattr(module, name) is getattr(fw.data, name)
    assert fw.utils.data.DataLoader is fw.data.DataLoader
    assert (fw.from_dlpack(dlpack.from_dlpack(fw.ones(2))) == 1).all()
    assert model_zoo.load_url is fw.hub.load_state_dict_from_url
    handle = fw.nn.Linear(1, 1).register_forward_hook(lambda *_: None)
    assert isinstance(handle, hooks.RemovableHandle)


def test_the_profilers_older_place():
    with fw.autograd.profiler.profile() as prof, fw.autograd.profiler.record_function("mine"):
        fw.ones(2) * 2
    assert "mine" in {row.key for row in prof.key_averages()}
