"""Worker processes and threads of the loader: the same batches for any of them, in memory of their own."""

import itertools
import multiprocessing
import os
import pickle
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from loader_samples import Augmented, Does, Stream, epochs, plain, seeded
from loader_samples import nothing_left as nothing_left
from numpy.random import mtrand

import framework as fw
from framework.data import DataLoader, Dataset, Subset, TensorDataset, default_collate, get_worker_info

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="worker processes are tested where fork is")


# -- the same batches ------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [
    {"num_workers": 1}, {"num_workers": 2}, {"num_workers": 7, "prefetch_factor": 1},
    {"num_workers": 2, "persistent_workers": True},
    {"num_workers": 2, "persistent_workers": True, "multiprocessing_context": "spawn"},
    {"num_workers": 1, "persistent_workers": True,
     "multiprocessing_context": multiprocessing.get_context("forkserver")}])
def test_the_same_batches_for_any_workers(more):
    whole = epochs(seeded(Augmented(), 4, shuffle=True))
    assert whole[0] != whole[1] and len({tuple(x) for b in whole[0] for x in b["numpy"]}) == 23
    assert epochs(seeded(Augmented(), 4, shuffle=True, **more)) == whole


def states():
    return repr((random.getstate(), np.random.get_state(legacy=False), fw.get_rng_state().tolist()))


def test_the_generators_of_this_process_are_left_alone():
    random.seed(1), np.random.seed(1), fw.manual_seed(1)
    np.random.randn()  # keeps a second number back
    loaders = [DataLoader(d, 4, num_workers=n) for n in (0, 2) for d in (Augmented(), Stream())]
    for loader in loaders:
        loader.state_dict()  # draws the seed
    before = states()
    for loader in loaders:
        next(iter(loader))
        assert states() == before


def test_another_kind_of_global_generator_is_left_alone_too():
    expected = plain(next(iter(seeded(Augmented(), 4))))
    usual = mtrand.get_bit_generator()
    mtrand.set_bit_generator(np.random.PCG64(3))
    try:
        loader = seeded(Augmented(), 4)
        loader.state_dict()
        before = states()
        assert plain(next(iter(loader))) == expected and states() == before
    finally:
        mtrand.set_bit_generator(usual)


def test_worker_threads_give_the_same_but_for_common_generators():
    def own(batches):
        return [[{k: v for k, v in b.items() if k in ("own", "index", "image")} for b in e] for e in batches]

    whole = own(epochs(seeded(Augmented(), 4, shuffle=True)))
    for more in ({}, {"persistent_workers": True}):
        loader = seeded(Augmented(), 4, shuffle=True, num_workers=3, worker_type="thread", **more)
        assert own(epochs(loader)) == whole
    del loader
    assert not [t for t in threading.enumerate() if t.name.startswith("DataLoader")]


@pytest.mark.parametrize("workers, make", [
    *((n, lambda n: DataLoader(Augmented(), 3, shuffle=True, num_workers=n)) for n in (0, 2, 4)),
    (2, lambda n: DataLoader(Augmented(5), None, shuffle=True, num_workers=n)),
    *((n, lambda n: DataLoader(Augmented(), 3, shuffle=True, num_workers=n, in_order=False)) for n in (0, 2)),
    *((n, lambda n: DataLoader(Stream(), 3, num_workers=n)) for n in (0, 3))])
def test_three_segments_equal_the_uninterrupted_run(make, workers):
    def batches(loader):
        for epoch in range(loader.state_dict()["epoch"], 2):
            for batch in loader:
                yield epoch, plain(batch), pickle.dumps(loader.state_dict())

    fw.manual_seed(5)
    whole = [x[:2] for x in batches(make(workers))]
    pieces, state = [], None
    for count in (2, 4, None):
        fw.manual_seed(5 if state is None else 77)
        loader = make(workers)
        if state is not None:
            loader.load_state_dict(pickle.loads(state))
        for *batch, state in itertools.islice(batches(loader), count):  # noqa: B007 - the last is taken up
            pieces.append(tuple(batch))
    key = repr if not loader.in_order else (lambda x: 0)
    assert sorted(pieces, key=key) == sorted(whole, key=key)


def test_a_state_out_of_order_goes_on_anyhow():
    slow = Does(lambda: time.sleep(0.3) or np.full(5000, 1, np.float32), at=1)
    loader = DataLoader(slow, 1, num_workers=2, in_order=False)
    found = [b[0, 0].item() for b in itertools.islice(loader, 5)]
    state = loader.state_dict()
    assert 1 not in found and state["position"] == 1 and state["ahead"] == sorted(found)[1:]
    for more in ({}, {"num_workers": 2}, {"num_workers": 1, "in_order": False}):
        again = DataLoader(slow, 1, **more)
        again.load_state_dict(state)
        rest = []
        while len(rest) < 7:  # resumed after every batch
            rest.append(next(iter(again))[0, 0].item())
            kept = again.state_dict()
            again.load_state_dict(kept)
        assert sorted(found + rest) == list(range(12)) and kept["position"] == 12 and "ahead" not in kept
        assert list(again) == []


class Counting(Stream):
    """A stream that says where it is, and does not read over what was."""

    begun = 0

    def __iter__(self):
        info = get_worker_info()
        step = 1 if info is None else info.num_workers
        self.at = self.begun or (0 if info is None else info.id)
        while self.at < self.n:
            self.at += step
            yield self.at - step, random.random()

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.begun = state["at"]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_stream_with_a_state_goes_on_from_it(workers):
    whole = [plain(b) for b in seeded(Counting(), 2, num_workers=workers)]
    loader = seeded(Counting(), 2, num_workers=workers)
    list(itertools.islice(loader, 4))
    state = loader.state_dict()
    assert [s["batches"] for s in state["shares"]] == ([4] if workers < 2 else [2, 1, 1])
    again = DataLoader(Counting(), 2, num_workers=workers)
    again.load_state_dict(state)
    assert [plain(b) for b in again] == whole[4:]
    if workers == 3:
        with pytest.raises(ValueError, match="read by 3 workers"):
            DataLoader(Counting(), 2, num_workers=2).load_state_dict(state)


def test_streams_are_shared_out_and_end_in_turn():
    found = [plain(b)[0] for b in DataLoader(Stream(11), 2, num_workers=3)]
    assert found == [[0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8]]
    anyhow = [plain(b)[0] for b in DataLoader(Stream(11), 2, num_workers=3, in_order=False)]
    assert sorted(sum(anyhow, [])) == list(range(11))
    assert [x[0] for x in DataLoader(Stream(5), None, num_workers=2)] == [0, 1, 2, 3, 4]
    assert len(DataLoader(Stream(11), 2, num_workers=3, drop_last=True)) == 5


def test_a_stream_that_every_worker_reads_whole_is_warned_of():
    class Whole(Stream):
        def __iter__(self):
            return iter(range(self.n))

    with pytest.warns(UserWarning, match="Whole gives more samples than len.*get_worker_info"):
        assert len(list(DataLoader(Whole(20), 2, num_workers=2))) == 20
    assert len(list(DataLoader(Whole(20), 2, num_workers=1))) == 10


def test_batches_do_not_share_memory():
    loader = DataLoader(Augmented(40), 2, num_workers=2)
    kept = list(loader)
    addresses = sorted((b["image"].data_ptr(), b["image"].nbytes) for b in kept)
    assert all(a + n <= b for (a, n), (b, _) in itertools.pairwise(addresses))
    kept[0]["image"][:] = -1
    views = [b["image"][1:, ::2] for b in itertools.islice(loader, 12)]  # only a view is kept
    assert [b["image"][:, 0, 0].tolist() for b in kept[1:]] == [[i, i + 1.0] for i in range(2, 40, 2)]
    assert [v[0, 0, 0].item() for v in views] == list(range(1, 25, 2))


def test_slots_are_used_again_when_batches_go():
    seen = {b["image"].data_ptr() // 4096 for b in DataLoader(Augmented(60), 2, num_workers=1)}
    assert len(seen) <= 4


def test_structures_and_odd_arrays_come_through():
    class Odd(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            big = np.arange(6000.0).reshape(60, 100)
            return [fw.from_numpy(big.T), np.asfortranarray(big), big[::2, ::2], np.zeros((0, 3)),
                    np.float32(i), fw.tensor(1.5), None, {"x": (i, {i})}, np.array(["a", None], object),
                    fw.zeros(0), b"bytes", fw.nn.Parameter(fw.ones(2)), np.ones(9000, ">i4")]

    for size in (None, 2):
        for batch, again in zip(DataLoader(Odd(), size, collate_fn=lambda x: x),
                                DataLoader(Odd(), size, collate_fn=lambda x: x, num_workers=2)):
            assert repr(batch) == repr(again)
    batch[0][0].numpy()[0] = 1  # writable


def test_a_batch_that_the_worker_keeps_is_not_overwritten():
    class Keeps(Augmented):
        kept = None

    data = Keeps(40)

    def collate(samples):
        before = data.kept and (data.kept[0]["image"].tolist(), data.kept[1])
        assert not before or before[0] == before[1]
        batch = default_collate(samples)
        if data.kept is None:
            data.kept = batch, batch["image"].tolist()
        return batch

    found = [b["index"].tolist() for b in DataLoader(data, 2, num_workers=1, collate_fn=collate)]
    assert found == [[i, i + 1] for i in range(0, 40, 2)]


def test_a_forked_child_keeps_its_batch():
    loader = iter(DataLoader(Augmented(40), 2, num_workers=1))
    batch = next(loader)
    come, go = os.pipe()
    child = os.fork()
    if not child:
        os.read(come, 1)
        try:
            next(loader)
            code = 2
        except RuntimeError as error:
            code = 0 if "belongs to process" in str(error) and batch["image"][0, 0, 0].item() == 0 and \
                batch["image"][1, 3, 3].item() == 1 else 3
        finally:
            os._exit(code)
    del batch
    assert len(list(loader)) == 19
    os.write(go, b"x")
    assert os.waitpid(child, 0)[1] == 0
    os.close(come), os.close(go)


def test_a_batch_on_a_slot_is_shared_by_copying_it():
    it = iter(DataLoader(Augmented(40), 2, num_workers=1))
    batch = next(it)["image"]
    assert not batch.is_shared() and batch.share_memory_().is_shared()
    sent = fw.multiprocessing.get_context("fork").Queue()
    for _ in range(4):
        sent.put(next(it)["image"])
    assert len(list(it)) == 15
    assert [sent.get()[:, 0, 0].tolist() for _ in range(4)] == [[i, i + 1.0] for i in (2, 4, 6, 8)]
    assert batch[:, 0, 0].tolist() == [0, 1]
    sent.close(), sent.join_thread()


def test_in_order_false_overtakes_a_slow_sample():
    slow = Does(lambda: time.sleep(0.4) or np.full(5000, 0, np.float32), at=0)
    found = [b[0, 0].item() for b in DataLoader(slow, 1, num_workers=2, in_order=False)]
    assert found[0] != 0 and sorted(found) == list(range(12))
    assert [b[0, 0].item() for b in DataLoader(slow, 1, num_workers=2)] == list(range(12))


def test_many_small_batches_without_workers():
    x = fw.arange(100)
    loader = DataLoader(Subset(TensorDataset(x), range(50)), 10, num_workers=2)
    assert [b[0].tolist() for b in loader] == [list(range(i, i + 10)) for i in range(0, 50, 10)]
    assert not multiprocessing.active_children()
    big = DataLoader(TensorDataset(fw.zeros(8, 300, 300)), 4, num_workers=1)
    for n, (b,) in enumerate(big):
        assert b.shape == (4, 300, 300) and multiprocessing.active_children() or n


# -- what is known in a worker ---------------------------------------------------------------------


def test_worker_info_and_init():
    class Info(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            info = get_worker_info()
            return info.id, info.num_workers, info.seed, len(info.dataset), self.opened

    def init(worker_id):
        get_worker_info().dataset.opened = 10 + worker_id

    for kind in ("process", "thread"):
        rows = [b[0] for b in DataLoader(Info(), 1, num_workers=2, worker_init_fn=init, worker_type=kind,
                                         collate_fn=list)]
        assert all(n == 2 and length == 4 and 0 <= seed < 1 << 63 for _, n, seed, length, _ in rows)
        if kind == "process":
            assert {r[4] for r in rows} <= {10, 11} and all(r[4] == 10 + r[0] for r in rows)
    assert get_worker_info() is None


def test_bfloat16_from_workers():
    """A dtype that the main process has not used yet arrives."""
    pytest.importorskip("ml_dtypes", reason="bfloat16 needs ml_dtypes")
    program = ("import framework as fw\n"
               "class D(fw.data.Dataset):\n"
               "    def __len__(self): return 3\n"
               "    def __getitem__(self, i): return fw.ones(2).bfloat16() * i\n"
               "print([b.float().tolist() for b in fw.data.DataLoader(D(), num_workers=1)])")
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
                         cwd=Path(__file__).parent.parent)
    assert out.stdout == "[[[0.0, 0.0]], [[1.0, 1.0]], [[2.0, 2.0]]]\n", out.stderr
