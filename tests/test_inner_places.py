"""Modules inside PyTorch that published libraries import from: the same objects under those names."""

import importlib

import pytest

import framework as fw

PLACES = [
    ("utils.data._utils.collate", "default_collate", "utils.data", "default_collate"),
    ("utils.data._utils.collate", "default_convert", "utils.data", "default_convert"),
    ("nn.parallel.distributed", "DistributedDataParallel", "nn.parallel", "DistributedDataParallel"),
    ("nn.parallel.scatter_gather", "scatter", "nn.parallel", "scatter"),
    ("nn.parallel.scatter_gather", "gather", "nn.parallel", "gather"),
    ("nn.parallel.scatter_gather", "scatter_kwargs", "nn.parallel", "scatter_kwargs"),
]


@pytest.mark.parametrize("place, name, home, own", PLACES)
def test_the_same_object(place, name, home, own):
    found = getattr(importlib.import_module(f"framework.{place}"), name)
    assert found is getattr(importlib.import_module(f"framework.{home}"), own)


def test_what_does_not_stack_and_the_protocol():
    pattern = importlib.import_module("framework.utils.data._utils.collate").np_str_obj_array_pattern
    assert pattern.search("<U5") and pattern.search("O") and not pattern.search("<f4")
    assert isinstance(fw.serialization.DEFAULT_PROTOCOL, int)
    assert fw.nn.parallel.distributed.DistributedDataParallel is fw.nn.parallel.DistributedDataParallel
