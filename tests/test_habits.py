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
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        with pytest.warns(UserWarning, match="are broadcast"):
            got = getattr(F, name)(x, fw.zeros(3))
        assert got == getattr(F, name)(x, fw.zeros(2, 3))
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
