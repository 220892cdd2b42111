"""The generated names are those of the registry."""

import pytest

from framework.ops import PUBLIC, stub

HINT = "run: python -m framework.ops.stub"


def test_tensor_stub_is_fresh():
    assert stub.PATH.read_text() == stub.generate(), HINT


@pytest.mark.parametrize("namespace", stub.FILES)
def test_lists_of_functions_are_fresh(namespace):
    assert stub.FILES[namespace].read_text() == stub.with_functions(namespace), HINT


@pytest.mark.parametrize("package", stub.CLASSES)
def test_lists_of_classes_are_fresh(package):
    assert (stub.INIT.parent / package / "__init__.py").read_text() == stub.with_classes(package), HINT


def test_every_namespace_has_a_file():
    assert {p.namespace for p in PUBLIC} - {""} == set(stub.FILES)
