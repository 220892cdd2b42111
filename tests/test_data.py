"""Datasets, samplers, collation, and a loader that resumes exactly."""

import gzip
import os
import random
from collections import Counter, OrderedDict, namedtuple
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import framework as fw
from framework.data import (
    MNIST,
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    FashionMNIST,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
    randomness,
    read_idx,
)
from framework.data.fetch import Fetcher
from framework.data.randomness import SampleRandom
from framework.errors import DTypeError, ShapeError
from framework.io import load, save
from framework.random import Generator, default_generator, manual_seed

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


class Squares(Dataset):
    def __init__(self, n):
        self.n, self.asked = n, []

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        self.asked.append(i)
        return i * i


class Count(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n


def flat(loader):
    return [x.tolist() for x in loader]


# -- datasets --------------------------------------------------------------------------------------


def test_datasets_combine():
    a, b = Squares(3), Squares(2)
    both = a + b
    assert isinstance(both, ConcatDataset) and [both[i] for i in range(5)] == [0, 1, 4, 0, 1]
    assert both[-1] == 1
    with pytest.raises(IndexError, match="out of range for 5"):
        both[5]
    assert [Subset(a, [2, 0])[i] for i in range(2)] == [4, 0] and len(Subset(a, [2, 0])) == 2
    assert Subset(Subset(a, [2, 0, 1]), [1, 2]).__getitems__([0, 1]) == [0, 1]
    assert StackDataset(a, a)[2] == (4, 4) and StackDataset(x=a)[1] == {"x": 1}
    assert list(ChainDataset([Count(2), Count(1)])) == list(Count(2) + Count(1)) == [0, 1, 0]
    assert len(ChainDataset([Count(2), Count(1)])) == 3


def test_wrong_datasets_are_refused():
    for make, error, text in (
            (lambda: TensorDataset(fw.ones(2), fw.ones(3)), ShapeError, "same length.*argument 1"),
            (lambda: TensorDataset(np.ones(2)), TypeError, "argument 0 must be a Tensor"),
            (lambda: TensorDataset(), TypeError, "at least one"),
            (lambda: TensorDataset(fw.tensor(1)), ShapeError, "length"),
            (lambda: ConcatDataset([]), ValueError, "at least one"),
            (lambda: ConcatDataset([Count(1)]), TypeError, "ChainDataset"),
            (lambda: list(ChainDataset([Squares(1)])), TypeError, "ConcatDataset"),
            (lambda: StackDataset(Squares(1), Squares(2)), ValueError, r"\[1, 2\]"),
            (lambda: StackDataset(), ValueError, "at least one"),
            (lambda: Dataset()[0], NotImplementedError, "__getitem__"),
            (lambda: iter(IterableDataset()), NotImplementedError, "__iter__"),
            (lambda: iter(Sampler()), NotImplementedError, "__iter__")):
        with pytest.raises(error, match=text):
            make()


def test_random_split():
    parts = random_split(range(10), [6, 4], Generator().manual_seed(1))
    again = random_split(range(10), [6, 4], Generator().manual_seed(1))
    assert [list(p) for p in parts] == [list(p) for p in again]
    assert sorted([*parts[0], *parts[1]]) == list(range(10))
    assert [len(p) for p in random_split(range(11), [0.5, 0.3, 0.2])] == [6, 3, 2]
    for lengths, text in (([6, 5], "sum to 11"), ([0.5, 0.4], "sum to 1"), ([-1, 11], "negative"),
                          ([1.5, -0.5], "fractions")):
        with pytest.raises(ValueError, match=text):
            random_split(range(10), lengths)
    with pytest.warns(UserWarning, match="part 1 is empty"):
        random_split(range(1), [0.5, 0.5])


def test_generic_names_as_programs_for_pytorch_write_them():
    class Numbers(Dataset[int]):
        def __getitem__(self, i):
            return i

        def __len__(self):
            return 2

    class Backwards(Sampler[int]):
        def __iter__(self):
            return iter([1, 0])

    loader: DataLoader[int] = DataLoader(Numbers(), sampler=Backwards())
    assert flat(loader) == [[1], [0]] and get_worker_info() is None


# -- samplers --------------------------------------------------------------------------------------


def test_samplers():
    g = Generator().manual_seed(0)
    data = list("abcdefg")
    assert list(SequentialSampler(data)) == list(range(7))
    order = list(RandomSampler(data, generator=g))
    assert sorted(order) == list(range(7)) and order != list(RandomSampler(data, generator=g))
    assert len(list(RandomSampler(data, True, 20, g))) == len(RandomSampler(data, True, 20)) == 20
    many = list(RandomSampler(data, num_samples=17, generator=g))
    assert Counter(many[:14]) == Counter(dict.fromkeys(range(7), 2)) and len(many) == 17
    assert sorted(SubsetRandomSampler([5, 3, 9], g)) == [3, 5, 9]
    drawn = Counter(WeightedRandomSampler([0.0, 1.0, 3.0], 4000, generator=g))
    assert drawn[0] == 0 and 2800 < drawn[2] < 3200
    assert sorted(WeightedRandomSampler([1.0, 1.0, 3.0], 3, False, g)) == [0, 1, 2]
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert len(BatchSampler(range(5), 2, True)) == 2 and len(BatchSampler(range(5), 2, False)) == 3
    assert list(RandomSampler([], generator=g)) == []


def test_samplers_depend_only_on_their_generator():
    for make in (lambda g: RandomSampler(range(9), generator=g), lambda g: SubsetRandomSampler(range(9), g),
                 lambda g: WeightedRandomSampler([1.0, 2.0], 9, generator=g)):
        orders = []
        for _ in range(2):
            state = default_generator.get_state().tolist()
            orders.append(list(make(Generator().manual_seed(5))))
            assert default_generator.get_state().tolist() == state
            manual_seed(len(orders))
        assert orders[0] == orders[1]


@pytest.mark.parametrize("make", [
    lambda: RandomSampler([1], num_samples=0), lambda: BatchSampler([1], 0, False),
    lambda: BatchSampler([1], True, False), lambda: WeightedRandomSampler([1.0], -1),
    lambda: WeightedRandomSampler([[1.0]], 1), lambda: BatchSampler([1], 1.5, False)])
def test_wrong_samplers(make):
    with pytest.raises(ValueError):
        make()


# -- collation -------------------------------------------------------------------------------------

Point = namedtuple("Point", "x y")


def test_collate_keeps_structure():
    sample = {"t": fw.ones(2), "a": np.zeros(3, np.int16), "s": np.float32(2), "i": 1, "f": 0.5, "b": True,
              "str": "x", "bytes": b"y", "tuple": (1, [2.0]), "p": Point(1, fw.zeros(1))}
    out = default_collate([sample] * 3)
    assert out["t"].shape == (3, 2) and out["a"].dtype is fw.int16 and out["a"].shape == (3, 3)
    assert out["s"].tolist() == [2.0] * 3 and out["s"].dtype is fw.float32
    assert out["i"].dtype is fw.int64 and out["f"].dtype is fw.float64 and out["b"].dtype is fw.bool
    assert out["str"] == ["x"] * 3 and out["bytes"] == [b"y"] * 3
    assert isinstance(out["tuple"], list) and out["tuple"][1][0].tolist() == [2.0] * 3
    assert type(out["p"]) is Point and out["p"].y.shape == (3, 1)
    assert type(default_collate([OrderedDict(a=1)])) is OrderedDict
    assert default_collate([1, 2.5]).tolist() == [1.0, 2.5]


def test_collate_keeps_gradients():
    w = [fw.tensor([1.0], requires_grad=True), fw.tensor([2.0])]
    (default_collate(w) * fw.tensor([[3.0], [4.0]])).sum().backward()
    assert w[0].grad.tolist() == [3.0]


@pytest.mark.parametrize("batch, error, text", [
    ([{"im": [fw.ones(2)]}, {"im": [fw.ones(3)]}], ShapeError,
     r"sample\['im'\]\[0\].*\[2\].*sample 1 has \[3\]"),
    ([(1, fw.ones(2)), (1, fw.ones(2, dtype=fw.float64))], DTypeError, r"sample\[1\].*float32.*float64"),
    ([Point(fw.ones(1), 1), Point(fw.ones(2), 1)], ShapeError, r"sample\.x"),
    ([np.ones(1), np.ones(2)], ShapeError, "differs in shape"),
    ([[1], [1, 2]], ShapeError, "differs in length.*1 parts, sample 1 has 2"),
    ([{"a": 1}, {"a": 1, "b": 2}], TypeError, "'b' stands only"),
    ([1, None], TypeError, "sample 1 None"), ([None, None], TypeError, "is None.*collate_fn"),
    (["a", b"b"], TypeError, "a str, sample 1 a bytes"), ([fw.ones(1), 1], TypeError, "a Tensor"),
    ([np.array("x")], TypeError, "dtype <U1"), ([], ValueError, "empty"), ([{1, 2}], TypeError, "a set")])
def test_collate_errors(batch, error, text):
    with pytest.raises(error, match=text):
        default_collate(batch)


def test_convert():
    out = default_convert({"a": np.ones(2), "p": Point(np.int32(1), "s"), "l": [1, (2.0,)]})
    assert out["a"].tolist() == [1.0, 1.0] and out["p"].x.item() == 1 and out["p"].y == "s"
    assert out["l"] == [1, [2.0]]


# -- the loader ------------------------------------------------------------------------------------


def test_loader_forms():
    assert flat(DataLoader(Squares(5), 2)) == [[0, 1], [4, 9], [16]]
    assert flat(DataLoader(Squares(5), 2, drop_last=True)) == [[0, 1], [4, 9]]
    assert list(DataLoader(Squares(3), batch_size=None)) == [0, 1, 4]
    assert flat(DataLoader(Squares(5), sampler=[4, 2])) == [[16], [4]]
    assert flat(DataLoader(Squares(5), batch_sampler=[[4, 2], [1]])) == [[16, 4], [1]]
    assert list(DataLoader(Squares(3), 2, collate_fn=sum)) == [1, 4]
    assert flat(DataLoader(Count(5), 2)) == [[0, 1], [2, 3], [4]]
    assert flat(DataLoader(Count(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(DataLoader(Count(3), None)) == [0, 1, 2]
    assert flat(DataLoader([5, 6, 7], 2)) == [[5, 6], [7]]
    for args in ((Squares(5), 2), (Count(5), 2), (Squares(5), None), (Count(5), None)):
        assert len(DataLoader(*args)) == len(list(DataLoader(*args)))
    assert list(DataLoader(Squares(0), 2)) == []
    endless = type("Endless", (IterableDataset,), {"__iter__": lambda self: iter(int, 1)})()
    with pytest.raises(TypeError):
        len(DataLoader(endless))
    assert DataLoader(endless).state_dict()["batches"] is None


@pytest.mark.parametrize("arguments, text", [
    ({"worker_type": "fibre"}, "worker_type"), ({"num_workers": -1}, "negative"),
    ({"num_workers": 1, "prefetch_factor": 0}, "prefetch_factor"),
    ({"num_workers": 1, "timeout": -1}, "timeout"),
    ({"num_workers": 1, "multiprocessing_context": "knife"}, "spawn.*knife"),
    ({"num_workers": 1, "multiprocessing_context": "fork", "worker_type": "thread"}, "is for processes"),
    ({"timeout": 3}, "timeout"), ({"prefetch_factor": 2}, "prefetch_factor"),
    ({"persistent_workers": True}, "persistent_workers"), ({"multiprocessing_context": "spawn"}, "context"),
    ({"shuffle": True, "sampler": [0]}, "both give the order"), ({"batch_size": 0}, "positive"),
    ({"batch_size": 2.0}, "positive"), ({"batch_sampler": [[0]], "batch_size": 2}, "alone"),
    ({"batch_sampler": [[0]], "drop_last": True}, "alone"),
    ({"batch_size": None, "drop_last": True}, "drop_last"),
    ({"batch_sampler": [[0]], "shuffle": True}, "alone")])
def test_contradictions(arguments, text):
    with pytest.raises(ValueError, match=text):
        DataLoader(Squares(3), **arguments)


def test_other_wrong_arguments():
    for arguments in ({"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}):
        with pytest.raises(ValueError, match="own order"):
            DataLoader(Count(3), **arguments)
    for arguments in ({"generator": 3}, {"collate_fn": 3}, {"shuffle": 1}, {"drop_last": 1}):
        with pytest.raises(TypeError):
            DataLoader(Squares(3), **arguments)
    with pytest.raises(TypeError, match="__getitem__"):
        DataLoader(3)


def test_whole_batches_are_fetched_at_once():
    x, y = fw.from_numpy(np.arange(12.0).reshape(6, 2)), fw.arange(6)
    data = TensorDataset(x, y)
    calls = []

    class Many(Squares):
        def __getitems__(self, indices):
            calls.append(indices)
            return list(indices)

    class Odd(TensorDataset):
        def __getitem__(self, i):
            return super().__getitem__(i)[1] + 100

    assert flat(DataLoader(Many(3), 2)) == [[0, 1], [2]] and calls == [[0, 1], [2]]
    for dataset in (data, Subset(data, [5, 4, 3, 2, 1, 0]), Subset(Subset(data, [1, 2]), [1, 0])):
        quick = [[t.tolist() for t in b] for b in DataLoader(dataset, 4)]
        slow = [[t.tolist() for t in b] for b in DataLoader(
            dataset, 4, collate_fn=lambda samples: default_collate(samples))]
        assert quick == slow
    assert flat(DataLoader(Odd(x, y), 3)) == [[100, 101, 102], [103, 104, 105]]
    batch = next(iter(DataLoader(data, 2)))
    batch[0]._array[...] = -1
    assert x.tolist()[0] == [0.0, 1.0], "a batch must not share memory with the dataset"


def test_errors_of_the_dataset_carry_the_sample():
    class Broken(Squares):
        def __getitem__(self, i):
            if i == 3:
                raise KeyError("oops")
            return super().__getitem__(i)

    class BrokenStream(IterableDataset):
        def __iter__(self):
            yield 1
            raise OSError("disk")

    class Ragged(Squares):
        def __getitem__(self, i):
            return fw.ones(i)

    class Stops(Squares):
        def __getitem__(self, i):
            raise StopIteration

    for loader, error, note in (
            (DataLoader(Broken(5), 2), KeyError, "sample 3 of Broken"),
            (DataLoader(Broken(5), None), KeyError, "sample 3 of Broken"),
            (DataLoader(Subset(Broken(5), [3]), 2), KeyError, "samples [0] of Subset"),
            (DataLoader(BrokenStream(), 2), OSError, "sample 1 of the stream BrokenStream"),
            (DataLoader(Ragged(3), 2), ShapeError, "collating samples [0, 1] of Ragged")):
        with pytest.raises(error) as caught:
            list(loader)
        assert any(note in n for n in caught.value.__notes__)
    with pytest.raises(RuntimeError, match="StopIteration for sample 0"):
        list(DataLoader(Stops(2)))


def test_tqdm_knows_the_length():
    tqdm = pytest.importorskip("tqdm")
    with open(os.devnull, "w") as quiet:
        bar = tqdm.tqdm(DataLoader(Squares(5), 2), file=quiet)
        assert bar.total == 3 and len(list(bar)) == 3


def test_same_seed_same_batches():
    runs = []
    for _ in range(2):
        manual_seed(3)
        loader = DataLoader(Squares(20), 4, shuffle=True)
        runs.append([flat(loader), flat(loader)])
    assert runs[0] == runs[1] and runs[0][0] != runs[0][1]
    assert sorted(sum(runs[0][1], [])) == [i * i for i in range(20)]


KINDS = {
    "shuffle": lambda n, b, g: DataLoader(Squares(n), b, shuffle=True, generator=g),
    "tensors": lambda n, b, g: DataLoader(TensorDataset(fw.arange(n)), b, shuffle=True, drop_last=True,
                                          generator=g, collate_fn=None),
    "plain": lambda n, b, g: DataLoader(Squares(n), b),
    "single": lambda n, b, g: DataLoader(Squares(n), None, shuffle=True, generator=g,
                                         collate_fn=lambda x: fw.tensor(x)),
    "replacement": lambda n, b, g: DataLoader(Squares(n), b, sampler=RandomSampler(
        range(n), replacement=True, generator=g)),
    "weighted": lambda n, b, g: DataLoader(Squares(n), b, sampler=WeightedRandomSampler(
        [1.0] * n, 2 * n, generator=g)),
    "batch sampler": lambda n, b, g: DataLoader(Squares(n), batch_sampler=BatchSampler(
        SubsetRandomSampler(list(range(n)), g), b, False)),
    "stream": lambda n, b, g: DataLoader(Count(n), b),
}


def as_list(batch):
    return batch[0].tolist() if isinstance(batch, list) else batch.tolist()


@settings(max_examples=120, deadline=None)
@given(kind=st.sampled_from(sorted(KINDS)), n=st.integers(1, 12), b=st.integers(1, 5),
       cuts=st.lists(st.integers(0, 25), min_size=1, max_size=3).map(sorted), seed=st.integers(0, 99))
def test_three_segments_equal_the_uninterrupted_run(kind, n, b, cuts, seed):
    def batches(loader, epochs):
        """(epoch, batch, state after it) of a training loop that begins at the loader's epoch."""
        for epoch in range(loader.state_dict()["epoch"], epochs):
            for batch in loader:
                yield epoch, as_list(batch), loader.state_dict()

    make = (lambda g: KINDS[kind](n, b, Generator().manual_seed(g)))
    whole = [x[:2] for x in batches(make(seed), 3)]
    pieces, state = [], None
    for start, stop in zip([0, *cuts], [*cuts, None]):
        loader = make(seed if state is None else seed + 1)
        if state is not None:
            loader.load_state_dict(state)
        count = None if stop is None else stop - start
        for epoch, batch, after in islice(batches(loader, 3), count):
            pieces.append((epoch, batch))
            state = after
        state = loader.state_dict() if state is None else state
        flat_other = DataLoader(Squares(7), 2, shuffle=True)  # another loader's progress in between
        list(flat_other)
    assert pieces == whole


def test_the_position_counts_batches_handed_out():
    loader = DataLoader(range(6), 2)
    assert loader.state_dict() == {"seed": None, "epoch": 0, "position": 0, "batches": 3}
    it = iter(loader)
    next(it)
    assert loader.state_dict()["position"] == 1
    assert len(list(it)) == 2
    assert loader.state_dict() == {"seed": None, "epoch": 1, "position": 0, "batches": 3}
    for _ in loader:
        break
    assert loader.state_dict()["position"] == 1 and loader.state_dict()["epoch"] == 1
    assert len(flat(loader)) == 3 and loader.state_dict()["epoch"] == 3  # a new `for` is a new epoch
    last = DataLoader(range(6), 2)
    last.load_state_dict({"seed": None, "epoch": 4, "position": 3, "batches": 3})
    assert flat(last) == [] and last.state_dict()["epoch"] == 5 and len(flat(last)) == 3


def test_an_old_iterator_does_not_move_the_loader():
    loader = DataLoader(Squares(6), 2)
    old, new = iter(loader), iter(loader)
    next(new)
    list(old)
    assert loader.state_dict()["position"] == 1 and loader.state_dict()["epoch"] == 1


def test_skipped_batches_are_not_loaded():
    data = Squares(10)
    loader = DataLoader(data, 2)
    loader.load_state_dict({"seed": None, "epoch": 0, "position": 4, "batches": 5})
    assert flat(loader) == [[64, 81]] and data.asked == [8, 9]


@pytest.mark.parametrize("change, text", [
    ({"batches": 9}, "loader of 9 batches, this one has 3"), ({"position": 4}, "beyond"),
    ({"epoch": -1}, "epoch"), ({"position": 1.0}, "position"), ({"seed": "x"}, "seed"),
    ({"seed": None}, "without shuffling"), ({"extra": 1}, "wanted a dict")])
def test_a_state_that_does_not_fit_changes_nothing(change, text):
    loader = DataLoader(Squares(6), 2, shuffle=True)
    next(iter(loader))
    before = loader.state_dict()
    with pytest.raises(ValueError, match=text):
        loader.load_state_dict({**before, **change})
    with pytest.raises(ValueError, match="wanted a dict"):
        loader.load_state_dict([1])
    assert loader.state_dict() == before


def test_own_samplers_hear_the_epoch():
    class Mine(Sampler):
        epochs = []

        def set_epoch(self, epoch):
            self.epochs.append(epoch)

        def __iter__(self):
            return iter([0, 1])

        def __len__(self):
            return 2

    loader = DataLoader(Squares(2), sampler=Mine())
    assert flat(loader) == flat(loader) == [[0], [1]] and Mine.epochs == [0, 1]


# -- idx files -------------------------------------------------------------------------------------


def idx(array, code=8):
    return bytes([0, 0, code, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape) + \
        array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.mark.parametrize("code, dtype", [(8, "u1"), (9, "i1"), (11, "i2"), (12, "i4"), (13, "f4"),
                                         (14, "f8")])
def test_read_idx(tmp_path, code, dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    for name, data in (("x", idx(array, code)), ("x.gz", gzip.compress(idx(array, code)))):
        (tmp_path / name).write_bytes(data)
        found = read_idx(tmp_path / name)
        assert found.dtype == np.dtype(dtype) and (found == array).all() and found.flags.writeable


def test_damaged_idx(tmp_path):
    good = idx(np.arange(6, dtype=np.uint8))
    packed = gzip.compress(good)
    path = tmp_path / "broken"
    cases = [good[:i] for i in range(len(good))] + [packed[:i] for i in range(len(packed))]
    cases += [good + b"x", b"\0\0\7\1" + good[4:], b"\0\0\x08\3" + b"\xff" * 12, b"\x89PNG" + good]
    for data in cases:
        path.write_bytes(data)
        with pytest.raises(ValueError, match="broken"):
            read_idx(path)
    with pytest.raises(FileNotFoundError, match="nothing"):
        read_idx(tmp_path / "nothing")


def write_digits(folder, images, labels):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train-images-idx3-ubyte").write_bytes(idx(images))
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))


def test_mnist_directory(tmp_path):
    images = np.arange(3 * 4, dtype=np.uint8).reshape(3, 2, 2)
    write_digits(tmp_path / "MNIST" / "raw", images, np.array([1, 2, 3], np.uint8))
    data = MNIST(tmp_path)
    assert len(data) == 3 and data[1][0].tolist() == images[1].tolist() and data[1][1] == 2
    batch = next(iter(DataLoader(data, 2)))
    assert batch[0].dtype is fw.uint8 and batch[0].shape == (2, 2, 2) and batch[1].tolist() == [1, 2]
    changed = MNIST(tmp_path, transform=lambda x: x.float() / 2, target_transform=lambda y: y * 10)
    x, y = next(iter(DataLoader(changed, 2)))
    assert x.dtype is fw.float32 and x.tolist() == (images[:2] / 2).tolist() and y.tolist() == [10, 20]
    with pytest.raises(FileNotFoundError, match="t10k-images-idx3-ubyte"):
        MNIST(tmp_path, train=False)
    for labels, text in ((np.array([1, 2], np.uint8), "3 images in train-images-idx3-ubyte but 2 labels"),
                         (np.array([1, 2, 10], np.uint8), "hold 10"),
                         (np.ones((3, 1), np.uint8), "1 dimensions, found")):
        write_digits(tmp_path / "bad", images, labels)
        with pytest.raises(ValueError, match=text):
            MNIST(tmp_path / "bad")


@pytest.mark.skipif(not (DATA / "mnist").is_dir(), reason=f"no MNIST files in {DATA}")
def test_real_mnist():
    data = MNIST(DATA / "mnist", train=False)
    assert data.data.shape == (10000, 28, 28) and data.targets.tolist()[:5] == [7, 2, 1, 0, 4]
    clothes = FashionMNIST(DATA / "fashion-mnist-subset", train=False)
    assert clothes.data.shape[1:] == (28, 28) and clothes.classes[0] == "T-shirt/top"


def test_a_state_goes_through_a_file(tmp_path):
    loader = DataLoader(Squares(9), 2, shuffle=True)
    walk = iter(loader)
    next(walk)
    save({"loader": loader.state_dict(), "random": default_generator.get_state()}, tmp_path / "x.ckpt")
    rest, numbers = [x.tolist() for x in walk], fw.rand(3).tolist()
    manual_seed(99)
    state = load(tmp_path / "x.ckpt")
    default_generator.set_state(state["random"])
    again = DataLoader(Squares(9), 2, shuffle=True)
    again.load_state_dict(state["loader"])
    assert flat(again) == rest and fw.rand(3).tolist() == numbers


def test_a_dataset_without_length_is_named():
    class Endless(fw.data.Dataset):
        def __getitem__(self, i):
            return i

    for shuffle in (False, True):
        with pytest.raises(TypeError, match="Endless, has no __len__; .*IterableDataset"):
            len(fw.data.DataLoader(Endless(), shuffle=shuffle))


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_weights_of_a_sampler_are_checked_at_once(bad):
    with pytest.raises(ValueError, match=r"weights\[1\] is "):
        fw.data.WeightedRandomSampler([1.0, bad], 2)


def test_distributed_sampler_for_exact_evaluation():
    """Without padding every index is given once, whatever the number of processes."""
    for n in (1, 2, 3, 4, 7):
        parts = [fw.data.DistributedSampler(range(5), n, r, shuffle=False, pad=False) for r in range(n)]
        assert sorted(i for p in parts for i in p) == [0, 1, 2, 3, 4]
        assert [len(p) for p in parts] == [len(list(p)) for p in parts] and parts[0].total_size == 5
    with pytest.raises(ValueError, match="choose one"):
        fw.data.DistributedSampler(range(5), 2, 0, drop_last=True, pad=False)


def test_a_loader_is_not_changed_once_it_is_made():
    loader = fw.data.DataLoader(fw.data.TensorDataset(fw.arange(4)), batch_size=2)
    for name in ("batch_size", "sampler", "batch_sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match=f"{name} cannot be changed"):
            setattr(loader, name, None)
    assert [len(x) for (x,) in loader] == [2, 2]


class _Some:
    """Every third sample draws, from each generator."""

    def __len__(self):
        return 24

    def __getitem__(self, index):
        if index % 3 == 1:
            return fw.initial_seed() >> 1, random.random(), np.random.rand(), fw.rand(()).item()
        return fw.initial_seed() >> 1, -1.0, -1.0, -1.0


@pytest.mark.parametrize("native", [True, False])
def test_samples_that_draw_do_so_from_a_start_of_their_own(native, monkeypatch):
    if not native:
        monkeypatch.setattr(randomness, "_can_start", lambda: False)

    def epoch(workers):
        fw.manual_seed(4)
        loader = fw.data.DataLoader(_Some(), batch_size=8, num_workers=workers)
        return [[t.tolist() for t in batch] for batch in loader]
    found = epoch(0)
    assert found == epoch(2)
    numbers = [x for batch in found for part in batch[1:] for x in part if 0 <= x < 1]
    assert len(numbers) == len(set(numbers)) == 24
    assert len({seed for batch in found for seed in batch[0]}) == 24


def test_an_interrupt_after_the_last_sample_is_raised_as_it_is():
    fetcher = Fetcher([1, 2], list, batched=True).prepare()

    class Interrupted(SampleRandom):
        def load(self, dataset, indices, samples):
            super().load(dataset, indices, samples)
            raise KeyboardInterrupt
    draws = Interrupted(0, 0)
    fetcher.sure = False
    with draws.lent(), pytest.raises(KeyboardInterrupt):
        fetcher.fetch(0, [0, 1], draws)
