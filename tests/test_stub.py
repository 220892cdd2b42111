"""The generated names are those of the registry."""

import ast

import pytest

from framework.ops import PUBLIC, shortened, stub

HINT = "run: python -m framework.ops.stub"


def test_tensor_stub_is_fresh():
    assert stub.PATH.read_text() == stub.generate(), HINT


def test_short_forms_of_the_road_are_fresh():
    assert shortened.PATH.read_text() == shortened.generate(), HINT


@pytest.mark.parametrize("namespace", stub.FILES)
def test_lists_of_functions_are_fresh(namespace):
    assert stub.FILES[namespace].read_text() == stub.with_functions(namespace), HINT
    assert stub.FILES[namespace].with_suffix(".pyi").read_text() == stub.namespace_stub(namespace), HINT


@pytest.mark.parametrize("package", stub.CLASSES)
def test_lists_of_classes_are_fresh(package):
    assert (stub.INIT.parent / package / "__init__.py").read_text() == stub.with_classes(package), HINT


def test_every_namespace_has_a_file():
    assert {p.namespace for p in PUBLIC} - {""} == set(stub.FILES)


def test_calls_run_kernels_in_the_road_only():
    """Kernels run by ``quiet``; elsewhere in the rooms only memory is written that no record computes."""
    def runs(path):
        return [n.lineno for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)
                and ast.unparse(n.func) in ("run", "quiet.run", "quiet.plain") and n.args
                and ast.unparse(n.args[0]).endswith(("kernel", "cpu", ".plain"))]
    package = shortened.RECORD.parent
    found = {p.relative_to(package).as_posix() for p in package.rglob("*.py") if runs(p)}
    assert found == {"record/road.py", "record/short_roads.py"}
