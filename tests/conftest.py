"""Fixtures of the whole suite: the watch over which records run, the default dtype, the seed."""

import random
import zlib

import numpy as np
import pytest
from watch import Watch

import framework as fw
from framework.ops.record import arming

WATCH = Watch()
UNARMED = [(f, f.__code__, "__wrapped__" in vars(f)) for f in arming.functions()]


@pytest.fixture(scope="session")
def watch():
    """Every kernel run of the session: which records were reached, and calls of each to look at again."""
    return WATCH


@pytest.fixture(autouse=True)
def restore_defaults():
    """A test that fails half way leaves no default dtype or grad mode behind."""
    dtype, enabled, recorded = fw.get_default_dtype(), fw.is_grad_enabled(), np.geterr()
    yield
    fw.set_default_dtype(dtype)
    fw.set_grad_enabled(enabled)
    np.seterr(**recorded)


@pytest.fixture(autouse=True)
def seed(request):
    """A test draws the same numbers alone, in any order and in any process; another test draws others."""
    number = zlib.crc32(request.node.nodeid.split("/")[-1].encode())
    fw.manual_seed(number)
    np.random.seed(number)
    random.seed(number)


@pytest.fixture(autouse=True)
def disarm():
    """A test that arms the functions (``arming.py``, which takes it back for no program) leaves them as they
    were: compiled functions put nothing off in an armed process, so their tests would test nothing."""
    yield
    _disarm()


def _disarm():
    if arming.armed:
        for function, code, wrapped in UNARMED:
            function.__code__ = code
            if not wrapped:
                vars(function).pop("__wrapped__", None)
        arming.armed.clear()


@pytest.fixture()
def armed():
    """As after the import of a module whose classes of tensors are asked."""
    arming.arm()


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"])
def each_threads(request):
    """The test runs with one thread and with two; the number that the process began with comes back."""
    before = fw.get_num_threads()
    fw.set_num_threads(request.param)
    yield request.param
    fw.set_num_threads(before)


@pytest.fixture(autouse=True)
def doctest_names(doctest_namespace):
    """What the examples in docstrings may use."""
    doctest_namespace["fw"] = doctest_namespace["framework"] = fw
    doctest_namespace["np"] = np


def pytest_collection_modifyitems(items):
    """Coverage is judged after the samples have run. What a module of tests arms by being read is undone."""
    _disarm()
    items.sort(key=lambda item: "test_coverage" in item.nodeid)
