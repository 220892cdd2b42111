"""The generated names are those of the registry."""

from framework.ops import stub

HINT = "run: python -m framework.ops.stub"


def test_tensor_stub_is_fresh():
    assert stub.PATH.read_text() == stub.generate(), HINT


def test_list_of_functions_is_fresh():
    text = stub.INIT.read_text()
    assert text == stub.with_functions(text), HINT
