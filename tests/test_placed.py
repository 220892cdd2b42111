"""``out=`` of every function of the table: the functional form's numbers, wherever they lie and overlap."""

import sys
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from table import ROWS, row_id

import framework as fw
from framework import _native
from framework.errors import FrameworkError
from framework.ops.record.public import run_into
from framework.ops.reduce.scan import cumsum_op
from framework.ops.reduce.sort import sort_op


class Filling:
    """A module whose function at ``path`` gets ``out=``."""

    def __init__(self, module, path, out):
        self._module = module
        self._given = False
        inner = getattr(module, path[0])
        setattr(self, path[0], Filling(inner, path[1:], out) if path[1:] else
                lambda *args, **settings: inner(*args, out=out, **settings))

    def __getattr__(self, name):
        return getattr(self._module, name)


def takes_out(row):
    place = fw
    for part in row_id(row).split("."):
        place = getattr(place, part, None)
    code = getattr(place, "__code__", None)
    return hasattr(place, "without_out") or "out" in getattr(code, "co_varnames", ())


def given(sample):
    return [fw.tensor(np.array(a)) if isinstance(a, (np.ndarray, np.generic)) else a for a in sample.inputs]


def parts(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def run(sample, name, out, inputs):
    fw.manual_seed(0)
    return sample.call(fw if out is None else Filling(fw, name.split("."), out), *inputs)


def same(a, b):
    assert a.dtype is b.dtype and a.shape == b.shape
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-14, atol=1e-14)


def rooms(wanted):
    """Places for results: in rows, turned, and a part of something larger."""
    yield [fw.zeros(x.shape, dtype=x.dtype) for x in wanted]
    yield [fw.zeros((*x.shape[::-1], 2), dtype=x.dtype)[..., 0].permute(*range(x.ndim)[::-1]) for x in wanted]
    yield [fw.zeros((2, *x.shape), dtype=x.dtype)[1] for x in wanted]


def into_itself(sample, name, place, wanted):
    """The call's result in one of its inputs, if it is as large, and in memory that overlaps that."""
    x = given(sample)[place]
    if x.shape == wanted.shape:
        inputs = given(sample)
        yield inputs[place], inputs
    inputs, first, many = given(sample), x.numel() // 2, wanted.numel()
    room = fw.zeros(many + 2 * x.numel() + 2, dtype=x.dtype)
    inputs[place] = room[first:first + x.numel()].view(x.shape).copy_(x)
    yield room[first + 1:first + 1 + many].view(wanted.shape), inputs


@pytest.mark.parametrize("row", [row for row in ROWS if takes_out(row)], ids=row_id)
def test_out_is_the_functional_form(row):
    name, compared = row_id(row), 0
    for sample in row.samples:
        wanted = run(sample, name, None, given(sample))
        several = isinstance(wanted, (list, tuple))
        if not all(isinstance(x, fw.Tensor) for x in parts(wanted)):
            continue
        wanted = [x.detach().clone() for x in parts(wanted)]
        for outs in rooms(wanted):
            versions = [x._version for x in outs]
            try:
                got = parts(run(sample, name, tuple(outs) if several else outs[0], given(sample)))
            except (TypeError, FrameworkError):
                break  # another form, which has no out=, or whose result is not the sample's
            if not all(x is own for x, own in zip(got, outs)):
                break
            compared += 1
            for own, version, want in zip(outs, versions, wanted):
                assert own._version > version
                same(own, want)
        else:
            for place, x in enumerate(sample.inputs):
                if several or "as_strided" in name or not isinstance(x, np.ndarray) or not x.ndim \
                        or x.dtype != wanted[0].numpy().dtype:
                    continue
                for out, inputs in into_itself(sample, name, place, wanted[0]):
                    try:
                        assert run(sample, name, out, inputs) is out
                    except ValueError as error:
                        assert "shares memory" in str(error)
                    else:
                        same(out, wanted[0])
    if not compared:
        pytest.skip("no sample calls the function, or has its result as it is")


def test_results_that_are_as_each_other_come_to_their_own_places():
    x = fw.tensor([3.0, 1.0, 2.0])
    low, high = fw.zeros(()), fw.zeros(())
    got = fw.aminmax(x, out=(low, high))
    assert got.min is low and got.max is high and (low.item(), high.item()) == (1, 3)
    both = fw.zeros(2)
    with pytest.raises((FrameworkError, ValueError, TypeError)):
        fw.aminmax(x, out=(both, high))


def test_what_is_recorded_is_refused_before_anything_is_written():
    x, out = fw.ones(3, requires_grad=True), fw.zeros(3)
    with pytest.raises(RuntimeError, match="cannot be recorded"):
        fw.i0(x, out=out)
    assert out.tolist() == [0] * 3 and out._version == 0
    with fw.no_grad():
        fw.cumsum(x, 0, out=out)
    assert out.tolist() == [1, 2, 3]


def test_what_was_kept_for_backward_is_seen_to_change():
    x = fw.ones(3, requires_grad=True)
    kept = fw.zeros(3)
    y = (x * kept).sum()
    fw.cumsum(fw.ones(3), 0, out=kept)
    with pytest.raises(RuntimeError, match="changed|modified"):
        y.backward()


def test_an_error_in_the_middle_counts_as_a_change_if_it_is_one():
    x, out = fw.arange(4.0), fw.zeros(2)
    with pytest.raises(IndexError):
        fw.gather(x, 0, fw.tensor([1, 9]), out=out)
    assert out._version == 0 and out.tolist() == [0, 0] or out._version > 0


@pytest.mark.skipif(_native.module is None, reason=f"no native extension: {_native.isa}")
def test_kernels_write_where_the_result_is_wanted_and_nothing_else_does():
    seen = []

    def summed(x, again=None):
        seen.append(fw.cumsum(x, 0))
        if again is not None:
            seen.append(fw.cumsum(again, 0))
        return seen[-1]

    x, out = fw.arange(6.0), fw.zeros(6)
    assert run_into(summed, (x,), {}, out, "summed", False, cumsum_op) is out
    assert seen.pop()._array is out._array and out.tolist() == [0, 1, 3, 6, 10, 15]
    # an intermediate lies there
    run_into(summed, (x,), {"again": fw.ones(6)}, out, "summed", False, cumsum_op)
    assert seen.pop()._array is not out._array and out.tolist() == [1, 2, 3, 4, 5, 6]
    # of what is not handed in
    run_into(lambda: fw.cumsum(x, 0) + 1, (), {}, out, "summed", False, cumsum_op)
    run_into(summed, (out,), {}, out, "summed", False, cumsum_op)
    assert seen.pop()._array is not out._array and out.tolist() == [1, 3, 7, 14, 25, 41]
    room = fw.arange(8.0)
    run_into(summed, (room[:6],), {}, room[2:], "summed", False, cumsum_op)
    assert room.tolist() == [0, 1, 0, 1, 3, 6, 10, 15]
    run_into(summed, (x,), {}, fw.zeros(12)[::2], "summed", False, cumsum_op)
    assert seen.pop()._array.base is None
    with fw.autograd.set_detect_anomaly(True):
        run_into(summed, (x,), {}, out, "summed", False, cumsum_op)
    assert seen.pop()._array is not out._array


def test_a_result_that_lies_where_another_one_goes():
    """What is made in the place of one result and handed out as another is set apart first."""
    def crossed(x):
        first, second = fw.cumsum(x, 0), fw.cumprod(x, 0)
        return second, first
    x, a, b = fw.tensor([1.0, 2.0, 3.0]), fw.zeros(3), fw.zeros(3)
    run_into(crossed, (x,), {}, (a, b), "crossed", False, cumsum_op)
    assert a.tolist() == [1, 2, 6] and b.tolist() == [1, 3, 6]
    run_into(lambda x: fw.cumsum(x, 0).flip(0), (x,), {}, a, "turned", False, cumsum_op)
    run_into(lambda x: fw.cumsum(x, 0).view(3, 1).t()[0], (x,), {}, b, "seen", False, cumsum_op)
    assert a.tolist() == [6, 3, 1] and b.tolist() == [1, 3, 6]


def test_large_results():
    x = fw.randn(300, 500)
    for function in (fw.exp, fw.i0, partial(fw.cumsum, dim=1), fw.triu, partial(fw.sort, dim=1),
                     partial(fw.topk, k=3)):
        wanted = parts(function(x))
        outs = [fw.zeros(w.shape, dtype=w.dtype) for w in wanted]
        function(x, out=outs[0] if len(outs) == 1 else tuple(outs))
        for out, want in zip(outs, wanted):
            same(out, want)


ERRORS = {
    "narrow": lambda o: fw.add(fw.ones(2, 3).half(), fw.ones(3, 3, dtype=fw.int64), out=o),
    "polar": lambda o: fw.polar(fw.ones(2, 3), fw.zeros(2, 3), out=o),
    "vecdot": lambda o: fw.linalg.vecdot(fw.ones(3, 2), fw.ones(3, 2), out=o),
    "eigh": lambda o: fw.linalg.eigh(fw.eye(3), out=(fw.zeros(3), o)),
    "svd": lambda o: fw.linalg.svd(fw.ones(2, 3), out=(o, fw.zeros(2))),
    "sum": lambda o: fw.sum(fw.ones(2, 3, 4), 2, dtype=fw.float64, out=o),
    "norm": lambda o: fw.norm(fw.ones(2, 3, 2), dim=2, dtype=fw.float64, out=o),
    "sort": lambda o: fw.sort(fw.rand(2, 3), 1, out=(o, fw.zeros(2, 3))),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_leaves_what_was_there_or_counts(name):
    leaf, o = fw.ones(2, 3, requires_grad=True), fw.full((2, 3), 77.0)
    y = (leaf * o).sum()
    with suppress(Exception):
        ERRORS[name](o)
    if o._version:
        with pytest.raises(fw.errors.AutogradError):
            y.backward()
    else:
        assert (o == 77).all()
        y.backward()
        assert (leaf.grad == 77).all()


def test_a_list_that_is_emptied_while_its_tensors_are_written():
    x = fw.randn(300, 300)
    outs = [fw.zeros(300, 300), fw.zeros(300, 300, dtype=fw.int64)]

    def emptied(x, fails):
        found = fw.sort(x)
        outs.clear()
        if fails:
            raise KeyError
        return found
    kept = list(outs)
    values, places = run_into(emptied, (x, False), {}, outs, "sort", False, sort_op)
    assert not outs and values is kept[0] and places is kept[1]
    assert fw.equal(values, fw.sort(x).values) and fw.equal(places, fw.sort(x).indices)
    outs += kept
    with pytest.raises(KeyError):
        run_into(emptied, (x, True), {}, outs, "sort", False, sort_op)
    assert not outs and kept[0]._version == 2


def test_results_of_what_runs_meanwhile_are_their_own():
    a, out, kept = fw.eye(4) * 1.5, fw.zeros(4, 4), []

    def once(frame, event, argument):
        if event == "call" and not kept:
            kept.append(None)
            kept[0] = a * 2
    for call in (lambda: fw.linalg.matrix_power(a, 5, out=out), lambda: fw.linalg.inv(a, out=out),
                 lambda: fw.cumsum(a, 0, out=out), lambda: fw.linalg.cholesky(a, out=out)):
        kept.clear()
        sys.setprofile(once)
        try:
            call()
        finally:
            sys.setprofile(None)
        assert kept[0].data_ptr() != out.data_ptr() and fw.equal(kept[0], fw.eye(4) * 3)


def test_memory_that_is_mapped_twice(tmp_path):
    np.arange(16, dtype=np.float32).reshape(4, 4).tofile(tmp_path / "x")
    for call in (lambda x, o: fw.linalg.matrix_power(x, 3, out=o), lambda x, o: fw.cumsum(x, 0, out=o),
                 lambda x, o: fw.matmul(x, x, out=o), lambda x, o: fw.sort(x, 0, True, out=(
                     o, fw.zeros(4, 4, dtype=fw.int64)))):
        x, o = (fw.from_numpy(np.asarray(np.memmap(tmp_path / "x", np.float32, "r+", shape=(4, 4))))
                for _ in range(2))
        x.copy_(fw.arange(16.0).view(4, 4))
        wanted, into = fw.zeros(4, 4), x.clone()
        call(into, wanted)
        call(x, o)
        assert fw.equal(o, wanted)
