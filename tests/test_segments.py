"""Segments of shared memory, the pool that hands out places in them, and tensors that move there."""

import errno
import gc
import os
import resource
import sys
from pathlib import Path

import numpy as np
import pytest
import shm

import framework as fw
from framework.backends import arena, segments
from framework.backends.segments import Segment, available, segment_of
from framework.errors import DeviceError, SharedMemoryError
from framework.ops.convert import share as sharing

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


def descriptors():
    """The descriptors that are open, without the one that lists them."""
    return sorted(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))


def mappings():
    """How many segments are mapped."""
    return Path("/proc/self/maps").read_text().count("memfd:framework")


def in_child(job):
    """Run ``job`` in a forked child; its last expression's truth comes back."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if job() else 2
        except BaseException as error:
            print(repr(error), file=sys.stderr)
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1] == 0


# -- segments --------------------------------------------------------------------------------------

@pytest.mark.parametrize("directory", [None, "tmp"])
def test_one_memory_for_all_who_have_it(directory, tmp_path):
    segment = Segment.create(100, directory=directory and str(tmp_path))
    there = Segment.attach(os.dup(segment.fd))
    mine, theirs = segment.array("int32", (2, 3), 8), there.array("int32", 6, 8)
    assert (segment.size, there.size) == (100, 100)
    assert not mine.any()
    mine[1] = 7
    assert theirs.tolist() == [0, 0, 0, 7, 7, 7]
    assert in_child(lambda: mine.__setitem__(0, 5) is None)
    assert theirs.tolist() == [5, 5, 5, 7, 7, 7]
    assert list(tmp_path.iterdir()) == []


def test_memory_lives_as_long_as_an_array_on_it():
    before = descriptors()
    segment = Segment.create(4096)
    view = segment.array("f8", 512)[3:5]
    segment.close()
    assert descriptors() == before and segment.fd is None
    del segment
    view[:] = 2.5
    assert view.tolist() == [2.5, 2.5]
    assert isinstance(segment_of(view), Segment) and segment_of(view).offset_of(view) == 24
    assert segment_of(np.zeros(3)) is None
    mapped = mappings()
    del view
    assert mappings() == mapped - 1


def test_nothing_is_left():
    before, names = descriptors(), shm.names()
    for size in (0, 1, 5000):
        Segment.create(size).array("u1", size)
    assert descriptors() == before and not shm.left(names)


def test_the_same_segment_is_one_object_in_a_process():
    segment = Segment.create(8)
    assert Segment.attach(os.dup(segment.fd), segment.key) is segment
    assert Segment.known(segment.key) is segment
    key = segment.key
    del segment
    assert Segment.known(key) is None


def test_wrong_requests():
    segment = Segment.create(16)
    for shape, offset in (((5,), 0), ((4,), 4), ((1,), -1)):
        with pytest.raises(ValueError, match="segment of 16 bytes"):
            segment.array("f4", shape, offset)
    with pytest.raises(ValueError):
        segment.array("f4", (4,), 0, (8,))
    with pytest.raises(TypeError, match="Python objects"):
        segment.array(object, (1,))
    with pytest.raises(ValueError, match="negative"):
        Segment.create(-1)
    segment.close()
    with pytest.raises(SharedMemoryError, match="closed"):
        segment.reserve(0, 8)


def test_no_room_is_an_error_with_numbers():
    before = descriptors()
    with pytest.raises(SharedMemoryError, match=rf"{1 << 50} bytes are needed, \d+ available") as error:
        Segment.create(1 << 50)
    assert error.value.errno == errno.ENOSPC and isinstance(error.value, OSError)
    assert descriptors() == before


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.ENOMEM])
def test_no_room_found_by_the_system(monkeypatch, code):
    def full(fd, offset, size):
        raise OSError(code, os.strerror(code))
    monkeypatch.setattr(os, "posix_fallocate", full)
    before = descriptors()
    with pytest.raises(SharedMemoryError, match=r"64 bytes are needed, \d+ available"):
        Segment.create(64)
    with pytest.raises(SharedMemoryError, match="bytes are needed"):
        fw.zeros(100_000).share_memory_()
    assert descriptors() == before


def test_a_file_system_without_room(tmp_path):
    room = available(str(tmp_path))
    with pytest.raises(SharedMemoryError, match=f"{room + (1 << 40)} bytes are needed"):
        Segment.create(room + (1 << 40), directory=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_no_descriptors():
    def job():
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(descriptors()) + 8,) * 2)
        kept = []
        with pytest.raises(SharedMemoryError, match="ulimit -n"):
            while len(kept) < 100:
                kept.append(Segment.create(8))
        kept.pop()
        return Segment.create(8).size == 8
    assert in_child(job)


def test_without_memfd_and_fallocate(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.delattr(os, "posix_fallocate")
    monkeypatch.setattr(os, "O_TMPFILE", None, raising=False)
    monkeypatch.delattr(os, "O_TMPFILE")
    before = shm.names()
    segment = Segment.create(3 << 20)
    assert os.fstat(segment.fd).st_blocks * 512 >= 3 << 20
    assert not shm.left(before)


def test_a_system_that_cannot(monkeypatch):
    monkeypatch.setattr(segments, "_libc", None)
    monkeypatch.setattr(segments.os, "name", "nt")
    with pytest.raises(SharedMemoryError, match="POSIX"):
        Segment.create(8)


def test_the_room_of_a_cgroup(monkeypatch, tmp_path):
    monkeypatch.setattr(segments, "_CGROUP", str(tmp_path))
    for name, text in (("memory.max", "1000000\n"), ("memory.current", "700000\n"),
                       ("memory.stat", "anon 5\ninactive_file 1000\nactive_file 200\n")):
        (tmp_path / name).write_text(text)
    assert available() == 301_200
    (tmp_path / "memory.max").write_text("max\n")
    assert available() > 1_000_000


# -- the pool --------------------------------------------------------------------------------------

def test_small_places_share_a_segment_and_large_ones_do_not():
    pool = arena.Pool()
    (a, i), (b, j) = pool.reserve(10), pool.reserve(100)
    assert a is b and j - i == 64
    assert pool.reserve(1 << 20)[0] is not pool.reserve(1 << 20)[0]


def test_many_tensors_few_descriptors():
    def job():
        gc.collect()  # descriptors of tests before
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        kept = [fw.full((n,), float(i)).share_memory_() for i, n in enumerate([90_000] * 90 + [50] * 2000)]
        return len(descriptors()) < 50 and all(float(t[-1]) == i for i, t in enumerate(kept))
    assert in_child(job)


def test_forked_processes_do_not_fill_one_arena():
    first = fw.zeros(4).share_memory_()
    def job():
        fw.ones(4).share_memory_()
        return True
    assert in_child(job)
    assert fw.zeros(4).share_memory_().tolist() == [0] * 4 == first.tolist()


# -- tensors ---------------------------------------------------------------------------------------

def test_aliases_go_on_aliasing():
    x = fw.arange(6.0).reshape(2, 3)
    t, row, other = x.t(), x[0], x.detach()
    data, again, inner = row.data, row.detach(), x.data[1]
    row.share_memory_()
    x += 10
    assert all(y.is_shared() for y in (x, t, row, other, data, again, inner))
    assert t.tolist() == [[10, 13], [11, 14], [12, 15]] and inner.tolist() == [13, 14, 15]
    assert row.tolist() == data.tolist() == again.tolist() == other[0].tolist() == [10, 11, 12]
    assert x.is_contiguous() and t.stride() == (1, 3)


@pytest.mark.parametrize("view", [lambda x: x.as_strided((3, 2), (1, 1)), lambda x: x.unfold(0, 3, 1),
                                  lambda x: x.expand(2, 9), lambda x: x.unfold(0, 3, 2)[1:].detach()])
@pytest.mark.parametrize("by_view", [False, True])
def test_views_by_strides_move_along(view, by_view):
    x = fw.zeros(9)
    seen = view(x)
    (seen if by_view else x).share_memory_()
    assert x.is_shared() and seen.is_shared() and segment_of(view(x)._array) is segment_of(x._array)
    x.add_(1)
    assert seen.min() == 1


def test_memory_that_cannot_be_written_moves_too():
    x = fw.from_numpy(np.frombuffer(b"abcd", np.uint8))
    assert x.share_memory_().is_shared() and x.tolist() == list(b"abcd")


def test_looking_for_aliases_costs_only_who_has_some(monkeypatch):
    scans = []
    found = gc.get_objects
    monkeypatch.setattr(sharing.gc, "get_objects", lambda: scans.append(1) or found())
    x = fw.zeros(3).reshape(3, 1)
    row = x[0]
    x.share_memory_()
    fw.nn.Linear(3, 4).share_memory()
    (fw.ones(2, 2) @ fw.ones(2, 2)).share_memory_()
    assert row.is_shared() and not scans
    y = fw.zeros(3)
    z = y.detach()
    y.share_memory_()
    assert scans == [1] and z.is_shared()


@pytest.mark.parametrize("make", [
    lambda: fw.tensor(3.0), lambda: fw.zeros(0, 2), lambda: fw.tensor([True, False]),
    lambda: fw.tensor([1 + 2j]), lambda: fw.arange(12).reshape(3, 4)[::2, 1:].t(),
    lambda: fw.ones(1).expand(4), lambda: fw.ones(3, dtype=fw.float16),
    lambda: fw.from_numpy(np.asfortranarray(np.arange(6.0).reshape(2, 3))),
    lambda: fw.from_numpy(np.frombuffer(bytearray(b"abcd"), np.uint8)[1:])])
def test_any_tensor_moves(make):
    x = make()
    values, strides, dtype = x.tolist(), x.stride(), x.dtype
    assert x.share_memory_() is x and x.is_shared()
    place = x.data_ptr()
    assert (x.tolist(), x.stride(), x.dtype) == (values, strides, dtype)
    assert x.share_memory_().data_ptr() == place


def test_leaves_keep_their_place_in_the_graph():
    w = fw.ones(3, requires_grad=True)
    y = (w * w).sum()
    w.share_memory_()
    y.backward()
    assert w.is_leaf and w.grad.tolist() == [2, 2, 2]
    z = w * 2
    z.share_memory_()
    z.sum().backward()
    assert w.grad.tolist() == [4, 4, 4]


def test_what_was_saved_before_notices_changes_after():
    w = fw.ones(3, requires_grad=True)
    x = fw.ones(3)
    y = (w * x).sum()
    x.share_memory_().add_(1)
    with pytest.raises(fw.errors.AutogradError, match="changed"):
        y.backward()


def test_module():
    model = fw.nn.Sequential(fw.nn.Linear(2, 3), fw.nn.BatchNorm1d(3), fw.nn.Linear(3, 2))
    model[2].extra = model[0].weight
    model(fw.ones(4, 2)).sum().backward()
    assert model.share_memory() is model
    tensors = [*model.parameters(), *model.buffers(), *(p.grad for p in model.parameters())]
    assert all(t.is_shared() for t in tensors) and model[2].extra is model[0].weight
    assert len({id(segment_of(t._array)) for t in tensors}) == 1
    optimizer = fw.optim.Adagrad(model.parameters())
    optimizer.share_memory()
    optimizer.step()
    assert all(s["sum"].is_shared() and s["step"] == 1 for s in optimizer.state.values())


def test_gpu_tensors_are_refused(monkeypatch):
    x = fw.zeros(2)
    monkeypatch.setattr(fw.Tensor, "is_cuda", True)
    with pytest.raises(DeviceError, match="share t.cpu()"):
        x.share_memory_()


def test_sparse_and_nested_tensors_elsewhere_do_not_matter():
    others = [fw.eye(2).to_sparse(), fw.nested.nested_tensor([fw.ones(2), fw.ones(1)])]
    alias = (x := fw.ones(3)).detach()
    x.share_memory_()
    assert x.is_shared() and alias.is_shared() and len(others) == 2
