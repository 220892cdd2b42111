"""Datasets on disk: image folders, CIFAR, arrays, text, tokens; the packed list; fetching files."""

import gc
import gzip
import hashlib
import os
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest

import framework as fw
from framework.data import (
    CIFAR10,
    CIFAR100,
    MNIST,
    ArrayDataset,
    DataLoader,
    DatasetFolder,
    DistributedSampler,
    ImageFolder,
    PackedList,
    TextLineDataset,
    TokenDataset,
    default_collate,
    transforms,
)
from framework.data.download import fetch
from framework.errors import DTypeError, ShapeError

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
real = pytest.mark.skipif(not DATA.exists(), reason="the data files are not there")


def url_of(path):
    return Path(path).as_uri()


# -- folders -------------------------------------------------------------------------------------


def tree(root, names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return root


def read(path):
    return Path(path).read_text()


def test_dataset_folder(tmp_path):
    root = tree(tmp_path, ["b/2.txt", "b/1.TXT", "a/deep/3.txt", "a/0.txt", "a/skip.bin", "loose.txt"])
    data = DatasetFolder(root, read, (".txt",), str.upper, lambda t: -t)
    assert data.classes == ["a", "b"] and data.class_to_idx == {"a": 0, "b": 1}
    assert [data[i] for i in range(len(data))] == [
        ("A/0.TXT", 0), ("A/DEEP/3.TXT", 0), ("B/1.TXT", -1), ("B/2.TXT", -1)]
    assert data.targets == [0, 0, 1, 1] and data.samples[0] == (str(root / "a" / "0.txt"), 0)
    copy = pickle.loads(pickle.dumps(DatasetFolder(root, read, ".txt")))
    assert copy[3] == ("b/2.txt", 1) and copy.samples == data.samples
    assert len(DatasetFolder(root, read, is_valid_file=lambda p: "deep" in p, allow_empty=True)) == 1


def test_links_of_a_folder_are_followed_but_not_in_circles(tmp_path):
    root = tree(tmp_path / "root", ["a/0.txt"])
    tree(tmp_path / "else", ["1.txt"])
    (root / "a" / "there").symlink_to(tmp_path / "else")
    for name, to in (("up", ".."), ("self", "."), ("nowhere", "nix")):
        (root / "a" / name).symlink_to(to)
    data = DatasetFolder(root, read, (".txt",))
    found = [Path(path).relative_to(root).as_posix() for path, _ in data.samples]
    assert found == ["a/0.txt", "a/there/1.txt"]


def test_dataset_folder_says_what_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no folders"):
        DatasetFolder(tmp_path, read, ".txt")
    tree(tmp_path, ["a/1.txt", "b/2.bin", "c/3.bin"])
    with pytest.raises(FileNotFoundError, match="no valid file in .* for b, c"):
        DatasetFolder(tmp_path, read, (".txt",))
    with pytest.raises(ValueError, match="either extensions or is_valid_file"):
        DatasetFolder(tmp_path, read)


def test_image_folder(tmp_path):
    Image = pytest.importorskip("PIL.Image", reason="needs pillow")
    for i, (kind, mode) in enumerate([("x", "RGB"), ("x", "L"), ("y", "RGBA"), ("y", "P")]):
        (tmp_path / kind).mkdir(exist_ok=True)
        Image.new(mode, (5, 4), 40 * i).save(tmp_path / kind / f"{i}.png")
    data = ImageFolder(tmp_path)
    assert [(data[i][0].mode, data[i][0].size, data[i][1]) for i in range(4)] == [
        ("RGB", (5, 4), 0)] * 2 + [("RGB", (5, 4), 1)] * 2
    images, labels = next(iter(DataLoader(ImageFolder(tmp_path, transforms.ToTensor()), batch_size=4)))
    assert images.shape == (4, 3, 4, 5) and labels.tolist() == [0, 0, 1, 1]
    (tmp_path / "x" / "broken.png").write_bytes(b"no image")
    with pytest.raises(OSError, match="broken.png is not an image"):
        ImageFolder(tmp_path)[2]


@real
def test_image_folder_real():
    pytest.importorskip("PIL.Image", reason="needs pillow")
    data = ImageFolder(DATA / "hymenoptera" / "train", transforms.Compose(
        [transforms.RandomResizedCrop(32), transforms.RandomHorizontalFlip(), transforms.ToTensor()]))
    assert data.classes == ["ants", "bees"] and len(data) == 80
    gc.collect()  # what other tests left open may not be closed meanwhile
    fds = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else None
    images, labels = next(iter(DataLoader(data, batch_size=8, shuffle=True)))
    assert images.shape == (8, 3, 32, 32) and 0 <= images.min().item() < images.max().item() <= 1
    assert fds is None or len(os.listdir("/proc/self/fd")) == fds, "no file stays open"


# -- CIFAR and MNIST -----------------------------------------------------------------------------


def cifar_file(path, n, label_bytes=1, seed=0):
    rng = np.random.default_rng(seed)
    records = rng.integers(0, 256, (n, label_bytes + 3072), np.uint8)
    records[:, :label_bytes] = rng.integers(0, 10, (n, label_bytes))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(records.tobytes())
    return records


def test_cifar(tmp_path):
    first = cifar_file(tmp_path / "cifar-10-batches-bin" / "data_batch_1.bin", 3)
    second = cifar_file(tmp_path / "data_batch_2.bin", 2, seed=1)
    data = CIFAR10(tmp_path)
    assert len(data) == 5 and data.data.shape == (5, 3, 32, 32) and data.data.dtype is fw.uint8
    assert data.targets.tolist() == [*first[:, 0], *second[:, 0]]
    np.testing.assert_array_equal(data[4][0].numpy().ravel(), second[1, 1:])
    got = next(iter(DataLoader(data, batch_size=5)))
    want = default_collate([data[i] for i in range(5)])
    assert all((a == b).all() for a, b in zip(got, want))
    with pytest.raises(FileNotFoundError, match="test_batch.bin.*download=True"):
        CIFAR10(tmp_path, train=False)
    (tmp_path / "test_batch.bin").write_bytes(b"\0" * 3000)
    with pytest.raises(ValueError, match="multiple of 3073"):
        CIFAR10(tmp_path, train=False)
    (tmp_path / "test_batch.bin").write_bytes(b"\x0b" * 3073)
    with pytest.raises(ValueError, match="hold 11, wanted 0 to 9"):
        CIFAR10(tmp_path, train=False)


def test_cifar100_takes_the_fine_labels(tmp_path):
    records = cifar_file(tmp_path / "train.bin", 4, label_bytes=2)
    data = CIFAR100(tmp_path)
    assert data.targets.tolist() == records[:, 1].tolist() and data.classes[3] == "3"
    (tmp_path / "fine_label_names.txt").write_text("\n".join(f"name{i}" for i in range(100)))
    assert CIFAR100(tmp_path).classes[3] == "name3"


@real
def test_cifar_real():
    data = CIFAR10(DATA / "cifar10-subset", train=False)
    assert len(data) == 1000 and np.bincount(data.targets.numpy()).tolist() == [100] * 10


def test_downloads(tmp_path, monkeypatch):
    """Files are fetched only when asked for and missing, and only with the right checksum."""
    source = tmp_path / "source"
    for split in ("train", "t10k"):
        for kind, head, n in (("images-idx3", [0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1], 2),
                              ("labels-idx1", [0, 0, 8, 1, 0, 0, 0, 2], 2)):
            path = source / f"{split}-{kind}-ubyte.gz"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(gzip.compress(bytes(head) + bytes(n)))
    sums = {p.name: "sha256:" + hashlib.sha256(p.read_bytes()).hexdigest() for p in source.iterdir()}
    monkeypatch.setattr(MNIST, "_mirrors", ("file:///nowhere/", url_of(source) + "/"))
    monkeypatch.setattr(MNIST, "_checksums", sums)
    root = tmp_path / "data"
    with pytest.raises(FileNotFoundError, match="download=True"):
        MNIST(root)
    assert len(MNIST(root, download=True)) == 2 and len(MNIST(root)) == 2
    assert sorted(p.name for p in (root / "MNIST" / "raw").iterdir()) == [
        "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"]
    monkeypatch.setattr(MNIST, "_checksums", dict.fromkeys(sums, "md5:0"))
    with pytest.raises(OSError, match="md5 is .*, wanted 0"):
        MNIST(root, train=False, download=True)
    assert len(list((root / "MNIST" / "raw").iterdir())) == 2, "nothing half or wrong is left"


def test_cifar_download(tmp_path, monkeypatch):
    names = [*CIFAR10._files[True], *CIFAR10._files[False]]
    for i, name in enumerate(names):
        cifar_file(tmp_path / "cifar-10-batches-bin" / name, 1, seed=i)
    archive = tmp_path / "cifar-10-binary.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(tmp_path / "cifar-10-batches-bin", "cifar-10-batches-bin")
    checksum = "md5:" + hashlib.md5(archive.read_bytes()).hexdigest()
    monkeypatch.setattr(CIFAR10, "_archive", (url_of(archive), checksum))
    data = CIFAR10(tmp_path / "new", download=True)
    assert len(data) == 5 and len(CIFAR10(tmp_path / "new", train=False)) == 1


def test_fetch_keeps_what_is_right(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    fetch([], path, "md5:" + hashlib.md5(b"abc").hexdigest())
    with pytest.raises(OSError, match="put it into"):
        fetch([], path, "md5:0")
    assert path.read_bytes() == b"abc"


# -- arrays, text, tokens ------------------------------------------------------------------------


def test_array_dataset(tmp_path):
    a, b = np.random.default_rng(0).normal(size=(6, 2, 3)).astype(np.float32), np.arange(6)
    np.save(tmp_path / "a.npy", a)
    data = ArrayDataset(tmp_path / "a.npy", fw.tensor(b))
    assert isinstance(data._arrays[0], np.memmap)
    x, y = data[4]
    np.testing.assert_array_equal(x.numpy(), a[4])
    assert y.item() == 4 and x.numpy().flags.writeable
    copy = pickle.loads(pickle.dumps(data))
    assert len(pickle.dumps(data)) < 2000 and copy[-1][1].item() == 5
    got = next(iter(DataLoader(data, batch_size=3, sampler=[5, 0, 2])))
    np.testing.assert_array_equal(got[0].numpy(), a[[5, 0, 2]])
    assert next(iter(DataLoader(ArrayDataset(b), batch_size=2))).tolist() == [0, 1]
    with pytest.raises(ShapeError, match="same length"):
        ArrayDataset(a, b[:3])
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(ValueError, match="not a .npy file of numbers"):
        ArrayDataset(tmp_path / "objects.npy")


def test_array_dataset_of_no_numbers():
    with pytest.raises(DTypeError, match="no tensors of <U1"):
        ArrayDataset(np.array(["a", "b"]))


def test_token_dataset(tmp_path):
    tokens = np.random.default_rng(0).integers(0, 99, 53).astype(np.uint16)
    np.save(tmp_path / "t.npy", tokens)
    for length, stride in ((5, None), (7, 3), (52, None), (1, 1)):
        data = TokenDataset(tmp_path / "t.npy", length, stride)
        windows = [(i, i + length) for i in range(0, 53, stride or length) if i + length < 53]
        assert len(data) == len(windows)
        for (x, y), (a, b) in zip((data[i] for i in range(len(data))), windows):
            assert x.tolist() == tokens[a:b].tolist() and y.tolist() == tokens[a + 1:b + 1].tolist()
        rows = [0, len(data) - 1]
        for got, want in zip(data.take(rows), default_collate([data[i] for i in rows])):
            assert got.dtype is fw.int64 and (got == want).all()
    assert len(TokenDataset(tokens, 53)) == 0
    assert pickle.loads(pickle.dumps(data))[3][0].item() == tokens[3]
    with pytest.raises(IndexError, match="out of range for 0 windows"):
        TokenDataset(tokens, 53)[0]
    with pytest.raises(ShapeError, match="one row of whole numbers"):
        TokenDataset(np.zeros(3), 2)


@pytest.mark.parametrize("content, lines", [
    (b"", []), (b"a", ["a"]), (b"a\nb\n", ["a", "b"]), (b"a\r\n\r\nb", ["a", "", "b"]),
    ("äß\n\n水".encode(), ["äß", "", "水"]), (b"\n", [""])])
def test_text_lines(tmp_path, content, lines):
    path = tmp_path / "t.txt"
    path.write_bytes(content)
    data = TextLineDataset(path)
    assert [data[i] for i in range(len(data))] == lines
    kept = TextLineDataset(path, skip_empty=True, transform=len)
    assert [kept[i] for i in range(len(kept))] == [len(line) for line in lines if line]
    copy = pickle.loads(pickle.dumps(data))
    assert [copy[i] for i in range(len(copy))] == lines


def test_text_of_another_encoding(tmp_path):
    path = tmp_path / "t.txt"
    path.write_bytes("ab\nä\n".encode("latin-1"))
    assert TextLineDataset(path, "latin-1")[1] == "ä"
    with pytest.raises(UnicodeDecodeError, match="sample 1 of .*t.txt, read as utf-8"):
        TextLineDataset(path)[1]
    with pytest.raises(ValueError, match="convert the file to UTF-8"):
        TextLineDataset(path, "utf-16")


@real
def test_text_real():
    data = TextLineDataset(DATA / "text" / "names.txt")
    assert len(data) == 32033 and data[0] == "emma"


# -- the packed list, the distributed sampler ----------------------------------------------------


def test_packed_list():
    items = ["a", ("b", 1), None, {"c": [2, 3]}, "水" * 50, b""]
    packed = PackedList(items)
    assert list(packed) == items and len(packed) == 6 and packed[-2] == items[-2]
    assert packed[1:5:2] == items[1:5:2] and packed == items and packed != items[:5]
    assert ("b", 1) in packed and packed.index(None) == 2
    assert pickle.loads(pickle.dumps(packed)) == items and list(PackedList([])) == []
    for bad in (6, -7):
        with pytest.raises(IndexError, match=f"index {bad} is out of range for 6 items"):
            packed[bad]


@pytest.mark.parametrize("n, replicas", [(10, 3), (9, 3), (2, 5), (1, 1)])
@pytest.mark.parametrize("shuffle", [True, False])
def test_distributed_shares(n, replicas, shuffle):
    """All shares together are every index, equally many each; dropping leaves none twice."""
    shares = [list(DistributedSampler(range(n), replicas, r, shuffle, seed=4)) for r in range(replicas)]
    assert len({len(s) for s in shares}) == 1 and set().union(*shares) == set(range(n))
    kept = [DistributedSampler(range(n), replicas, r, shuffle, 4, True) for r in range(replicas)]
    together = [i for s in kept for i in s]
    assert len(together) == len(set(together)) == n // replicas * replicas
    assert all(len(s) == n // replicas for s in kept)


def test_distributed_epochs(monkeypatch):
    sampler = DistributedSampler(range(50), 2, 1, seed=7)
    first = list(sampler)
    assert first == list(sampler)
    sampler.set_epoch(1)
    assert list(sampler) != first
    loader = DataLoader(range(50), batch_size=50, sampler=DistributedSampler(range(50), 2, 1, seed=7))
    epochs = [next(iter(loader)).tolist() for _ in range(2)]
    assert epochs == [first, list(sampler)], "the loader counts the epochs"
    with pytest.raises(ValueError, match="WORLD_SIZE is not set"):
        DistributedSampler(range(3))
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert DistributedSampler(range(3), shuffle=False).rank == 1
    with pytest.raises(ValueError, match="rank must be in"):
        DistributedSampler(range(3), 2, 2)
