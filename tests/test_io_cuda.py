"""save and load of tensors on a GPU (or the stand-in for CuPy, see test_cuda)."""

import io

import pytest
from test_cuda import cupy  # noqa: F401 - the fixture

import framework as fw
from framework.io import Checkpointer, load, save
from framework.tensor import Tensor

pytestmark = pytest.mark.usefixtures("cupy")


def dumps(obj, **options):
    file = io.BytesIO()
    save(obj, file, **options)
    return file.getvalue()


def test_round_trip_and_places():
    w = fw.arange(6, device="cuda").float().reshape(2, 3)
    obj = {"w": w, "again": [w, w.detach()], "t": w.t(), "c": fw.tensor([1 + 2j], device="cuda"),
           "host": fw.ones(2), "empty": fw.zeros(0, device="cuda"), "flag": fw.tensor([True], device="cuda")}
    data = dumps(obj)
    back = load(io.BytesIO(data))
    assert back["w"].device == w.device and back["host"].device == fw.device("cpu")
    assert back["w"] is back["again"][0] and back["again"][1].data_ptr() == back["w"].data_ptr()
    for name in ("w", "t", "c", "flag", "empty"):
        assert back[name].cpu().tolist() == obj[name].cpu().tolist() and back[name].device.type == "cuda"
    for place in ("cpu", {"cuda:0": "cpu"}, lambda storage, loc: storage):
        assert load(io.BytesIO(data), place)["w"].device == fw.device("cpu")
    seen = []
    load(io.BytesIO(data), lambda storage, loc: seen.append(loc))
    assert set(seen) == {"cuda:0", "cpu"}


def test_views_of_a_host_file_stay_tied_on_the_device():
    base = fw.arange(12).float().reshape(3, 4)
    back = load(io.BytesIO(dumps({"base": base, "column": base[:, 1], "row": base[2]})), "cuda")
    assert back["column"].cpu().tolist() == [1, 5, 9] and back["row"].cpu().tolist() == [8, 9, 10, 11]
    assert back["column"].data_ptr() == back["base"].data_ptr() + 4
    assert all(x.is_cuda for x in back.values())


def test_large_strided_tensors_move_in_pieces():
    w = fw.arange(3_000_000, device="cuda").reshape(1000, 3000).t()
    back = load(io.BytesIO(dumps({"w": w})), "cpu")["w"]
    assert back[1, 0].item() == 1 and back[2999, 999].item() == 2_999_999 and back[0, 5].item() == 15_000


def test_whole_model(tmp_path):
    model = fw.nn.Linear(2, 2).to("cuda")
    back = load(io.BytesIO(dumps(model)), weights_only=False)
    assert back.weight.is_cuda and type(back.weight) is fw.nn.Parameter
    assert not load(io.BytesIO(dumps(model)), "cpu", weights_only=False).weight.is_cuda


@pytest.mark.parametrize("background", [False, True])
def test_checkpointer(tmp_path, background):
    model = fw.nn.Linear(2, 2).to("cuda")
    optimizer = fw.optim.Adam(model.named_parameters())
    model(fw.ones(1, 2, device="cuda")).sum().backward()
    optimizer.step()
    fw.rand(2, device="cuda")
    with Checkpointer(tmp_path, background=background) as checkpoints:
        checkpoints.save(1, model=model, optimizer=optimizer)
    wanted, drawn = model.weight.detach().cpu().tolist(), fw.rand(3, device="cuda").cpu().tolist()
    optimizer.step()
    assert checkpoints.resume(model=model, optimizer=optimizer)["step"] == 1
    assert model.weight.is_cuda and model.weight.detach().cpu().tolist() == wanted
    assert isinstance(optimizer.state[model.weight]["exp_avg"], Tensor)
    assert optimizer.state[model.weight]["exp_avg"].is_cuda
    assert fw.rand(3, device="cuda").cpu().tolist() == drawn
