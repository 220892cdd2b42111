"""utils.benchmark.Timer: how often it runs, with how many threads, and what it reports."""

import pytest

import framework as fw
from framework.utils.benchmark import Timer


def test_runs_are_counted():
    seen = []
    m = Timer("seen.append(threads())", globals={"seen": seen, "threads": fw.get_num_threads}, label="append",
              num_threads=1).timeit(200)
    assert len(seen) == 202 and set(seen) == {1}  # with those to warm up
    assert m.number_per_run == 200 and len(m.times) == 1 and m.mean == m.median and m.iqr == 0
    assert "append" in repr(m) and "200" in repr(m)


def test_time_decides_how_often():
    clock = iter(x / 1000 for x in range(100000))  # every look at the clock is a millisecond later
    called = []
    m = Timer("pass", timer=lambda: next(clock)).blocked_autorange(lambda n, t: called.append((n, t)), 0.05)
    assert sum(m.raw_times) >= 0.05 and len(called) == len(m.raw_times)
    assert m.median == pytest.approx(1e-3 / m.number_per_run)
    assert len(Timer("pass", timer=lambda: next(clock)).adaptive_autorange(min_run_time=0.002).raw_times) >= 4


def test_threads_come_back_and_wrong_arguments_are_refused():
    before = fw.get_num_threads()
    with pytest.raises(ZeroDivisionError):
        Timer("1 / 0").timeit(1)
    assert fw.get_num_threads() == before
    with pytest.raises(ValueError, match="Python"):
        Timer("x", language="c++")
