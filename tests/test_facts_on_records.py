"""What is true of an op is said by its record: nobody asks ops for their names, nobody lists them."""

import ast
from pathlib import Path

import pytest

import framework as fw
from framework.onnx.lowering.records import FUNCTIONS as OF_ONNX
from framework.ops.record.op import OPS
from framework.runtime.lowering.traces import FUNCTIONS as OF_MODEL_FILES
from framework.seam import Maker

PACKAGE = Path(__file__).resolve().parent.parent / "framework"
MAKERS = {value for module in (fw.creation, fw.from_data, fw.ops.random.numbers, fw.ops.random.draws)
          for value in vars(module).values() if isinstance(value, Maker)}
NAMES = {record.name.lstrip("_") for record in (*OPS, *MAKERS)}

# collections of words that are names of ops by accident, or that are no facts about ops
NO_LISTS = {
    "array_api/operators.py": "methods of Python's operators, for a class that is no Tensor",
    "foreach.py": "which functions have a form for lists: PyTorch's own list of names",
    "fx/proxy.py": "methods of Python's operators, for a class that is no Tensor",
    "io/torch_names.py": "Python's own types, in files",
    "models/small.py": "kinds of recurrent layers, an argument",
    "nested/functions.py": "the functions that a class of tensors does itself, at their rules",
    "nn/embedding.py": "ways to reduce, an argument",
    "nn/rnn_cell.py": "kinds of recurrent layers, an argument",
    "numpy_protocol/shapes.py": "NumPy's functions, each bound under its name",
    "onnx/operators/recurrent.py": "ONNX's words for activations, in files",
    "onnx/operators/shapes.py": "ONNX's words for reductions, in files",
    "ops/index/embedding_bag.py": "ways to reduce, an argument",
    "ops/index/scatter_reduce.py": "ways to reduce, an argument",
    "ops/language/cuda_fold.py": "ways to reduce, an argument",
    "ops/language/program.py": "pairs of the engine's instructions that are one",
    "ops/language/words.py": "the table of the language's words itself",
    "sparse/products.py": "ways to reduce, an argument",
}


def texts(node):
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def is_a_name(node):
    return isinstance(node, ast.Attribute) and node.attr in ("name", "__name__")


def questions(tree):
    """Comparisons of somebody's name with names of ops, and tables that are asked by it: (line, names)."""
    constants = {t.id: n.value for n in tree.body if isinstance(n, ast.Assign)
                 for t in n.targets if isinstance(t, ast.Name)}

    def shown(node):
        return texts(constants.get(node.id, node) if isinstance(node, ast.Name) else node)

    for node in ast.walk(tree):
        found = set()
        if isinstance(node, ast.Compare) and any(map(is_a_name, (node.left, *node.comparators))):
            found = set().union(*map(shown, (node.left, *node.comparators)))
        elif isinstance(node, ast.Subscript) and is_a_name(node.slice):
            found = shown(node.value)
        elif (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
              and node.args and is_a_name(node.args[0])):
            found = shown(node.func.value)
        if found & NAMES:
            yield node.lineno, sorted(found & NAMES)


def lists(tree):
    """Collections of three strings or more, most of which are names of ops: (line, names)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            items = [k for k in node.keys if k is not None]
        elif isinstance(node, (ast.Set, ast.Tuple, ast.List)):
            items = node.elts
        elif (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("'.split")
              and isinstance(node.func.value, ast.Constant)):
            items = [ast.Constant(word) for word in node.func.value.value.split()]
        else:
            continue
        words = [i.value for i in items if isinstance(i, ast.Constant) and isinstance(i.value, str)]
        found = [word for word in words if word in NAMES]
        if len(found) >= 3 and len(found) >= 0.6 * len(words):
            yield node.lineno, found


def found_in(search):
    return {path.relative_to(PACKAGE).as_posix(): hits for path in sorted(PACKAGE.rglob("*.py"))
            if (hits := list(search(ast.parse(path.read_text()))))}


def test_nobody_asks_an_op_for_its_name():
    assert not found_in(questions), "say it on the record (Op in ops/record/op.py), and ask the record"


def test_there_are_no_lists_of_ops():
    found = found_in(lists)
    new = {path: hits for path, hits in found.items() if path not in NO_LISTS}
    assert not new, "say it on the record (Op in ops/record/op.py), and ask the record"
    assert not NO_LISTS.keys() - found.keys(), "gone: take it off the list"


@pytest.mark.parametrize("field, functions", [("onnx", OF_ONNX), ("runtime", OF_MODEL_FILES)])
def test_what_records_say_names_functions_that_are_there(field, functions):
    called = {(op.name, call.func.id) for op in (*OPS, *MAKERS)
              for call in ast.walk(ast.parse(getattr(op, field) or ""))
              if isinstance(call, ast.Call) and not call.func.id[:1].isupper()}  # ONNX's own have a capital
    assert len(called) >= 20
    assert not [pair for pair in called if pair[1] not in functions]


@pytest.mark.parametrize("search, text", [
    (questions, "if op.name == 'transfer': pass"),
    (questions, "REAL = ('index', 'masked_select')\nif self.name not in REAL: pass"),
    (questions, "FLOPS = {'matmul': 1}\nFLOPS.get(event.name)"),
    (questions, "FLOPS = {'matmul': 1}\nFLOPS[event.op.name]"),
    (lists, "LOWER = {'matmul', 'linear', 'conv', 'einsum'}"),
    (lists, "LOWER = 'matmul linear conv'.split()"),
])
def test_what_is_found(search, text):
    assert list(search(ast.parse(text)))
    assert not list(search(ast.parse("names = ('encoder', 'decoder', 'head'); module.name == 'encoder'")))
