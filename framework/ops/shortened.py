"""The short forms of the road of a call: what is known of frequent calls, and the code that is left then.

``python -m framework.ops.stub`` writes them into ``record/short_roads.py``; a test compares. Each is ``road``
of ``record/road.py`` with other arguments, and with expressions replaced by what they are there. Tests with
a known answer are left out.
"""

import ast
from pathlib import Path
from typing import Any, NamedTuple

RECORD = Path(__file__).parent / "record"
PATH = RECORD / "short_roads.py"


class Form(NamedTuple):
    """A short form: its head, what it is for, and what expressions and statements of ``road`` are in it.

    part: "compute" if it ends where the kernel has run, "finish" if it begins there.
    """

    head: str
    says: str
    known: dict[str, str]
    part: str = "both"


_ELEMENTWISE = {
    "given or quiet.run": "quiet.run", "settings": "{}", "bare": "True",
    "out.dtype.kind in INEXACT": "True", "len(op.outputs) > 1": "False", "out is NotImplemented": "False",
    # once a program has used bfloat16, a GPU or a batch: the others are like the first
    "dtypes.plain": "dtypes.plain or (type(a) is ndarray and a.dtype.kind != 'V')"}

FORMS = (
    Form("def single(op: Any, input: Any, a: Any, recorded: bool) -> Any",
         "``road`` of an elementwise op of one operand.",
         {**_ELEMENTWISE, "inputs": "(input,)", "arrays": "(a,)"}),
    Form("def pair(op: Any, input: Any, other: Any, a: Any, b: Any, recorded: bool) -> Any",
         "``road`` of an elementwise op of two operands that need no promotion; the second may be a number.",
         {**_ELEMENTWISE, "inputs": "(input, other)", "arrays": "(a, b)",
          # a sum keeps nothing, and needs no shapes where nothing was broadcast; a number has no shape
          "op.node(inputs, arrays, (result,), settings)":
              "PlainNode(op, (input._node, None if b is other else other._node)) "
              "if op.keeps_nothing and (b is other or a.shape == b.shape) "
              "else op.node((input, other), (a, b), (result,), {})"}),
    Form("def road_into(op: Any, inputs: tuple, arrays: Any, memory: Any, settings: dict, run: Any) -> None",
         "``road`` where the kernel writes into ``memory``, and nothing is recorded.\n\n"
         "    A TypeError, of a kernel that has no such argument, is raised as it is.\n    ",
         {"run is None": "False", "run = given or quiet.run": "pass",
          "run(kernel, *arrays, **settings)": "run(kernel, *arrays, **settings, out=memory)",
          "run(kernel, *arrays)": "run(kernel, *arrays, out=memory)",
          "after(error, op, inputs, arrays, settings)":
              "after(error, op, inputs, arrays, {**settings, 'out': memory}, TypeError)"}, part="compute"),
    Form("def seen_anew(input: Any, a: Any, out: Any, op: Any, settings: dict) -> Any",
         "``road`` of a view ``out`` of the array ``a``, which is there; ``op`` keeps the shape at most.",
         {"inputs": "(input,)", "arrays": "(a,)", "recorded": "input._node is not None", "bare": "False",
          "type(out) is not ndarray": "False", "op.view": "True",
          "out.ndim >= op.loose_from": "False", "op.has_vjp": "True", "out.dtype.kind in INEXACT": "True",
          # ``link`` gives it the others
          "result._node = result._counter = result._more = None": "result._node = None",
          "link_view(inputs[0], result, op, settings)": "link(input, result, op, settings)",
          "op.node(inputs, arrays, (result,), settings)":
              "Node(op, (input._node,), None if op.keeps_nothing else {'x_shape': a.shape}, None, settings, "
              "None)"},
         part="finish"),
)

HEADER = '''"""Short forms of ``road``, written by `python -m framework.ops.stub` as ``shortened.py`` says."""

# ruff: noqa
from typing import Any

from ...node import Node, PlainNode
from .aliases import link
from .road import (
    OP,
    Event,
    Tensor,
    after,
    as_array,
    dtypes,
    intercepted,
    ndarray,
    new,
    quiet,
    state,
    track,
)
'''


class _Shortened(ast.NodeTransformer):
    """The code with what is known in its place, and without what nobody asks for then."""

    def __init__(self, form: Form) -> None:
        self.known = {text: ast.parse(value).body[0] for text, value in form.known.items()}

    def visit(self, node: ast.AST) -> Any:
        found = self.known.get(ast.unparse(node))
        if found is None or isinstance(getattr(node, "ctx", None), ast.Store):
            return super().visit(node)
        return found.value if isinstance(found, ast.Expr) and isinstance(node, ast.expr) else found

    def visit_Assign(self, node: ast.Assign) -> Any:
        return None if ast.unparse(node.targets[0]) in self.known else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> Any:
        test = self.visit(node.test)
        answer = _known(test)
        if answer is None:
            node.test = test
            node.body = [made for one in node.body for made in _as_list(self.visit(one))]
            node.orelse = [made for one in node.orelse for made in _as_list(self.visit(one))]
            return node
        return [made for one in (node.body if answer else node.orelse) for made in _as_list(self.visit(one))]

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        test = self.visit(node.test)
        answer = _known(test)
        if answer is None:
            return ast.IfExp(test, self.visit(node.body), self.visit(node.orelse))
        return self.visit(node.body if answer else node.orelse)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        inner = self.visit(node.operand)
        answer = _known(inner)
        return ast.UnaryOp(node.op, inner) if answer is None else ast.Constant(not answer)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        if not isinstance(node.op, ast.And):
            return self.generic_visit(node)
        values = [self.visit(v) for v in node.values]
        if any(_known(v) is False for v in values):
            return ast.Constant(False)
        values = [v for v in values if _known(v) is None]
        return ast.Constant(True) if not values else values[0] if len(values) == 1 \
            else ast.BoolOp(node.op, values)

    def visit_Call(self, node: ast.Call) -> Any:
        """Without stars where it is known what they stand for."""
        self.generic_visit(node)
        node.args = [one for a in node.args for one in
                     (a.value.elts if isinstance(a, ast.Starred) and isinstance(a.value, ast.Tuple) else [a])]
        return node


def _known(test: ast.expr) -> bool | None:
    if isinstance(test, ast.Constant):
        return bool(test.value)
    return False if isinstance(test, ast.Dict) and not test.keys else None


def _as_list(made: Any) -> list:
    return made if isinstance(made, list) else [] if made is None else [made]


def shortened(form: Form, road: ast.FunctionDef) -> str:
    """The text of a short form."""
    function = ast.parse(f'{form.head}:\n    """{form.says}"""').body[0]
    assert isinstance(function, ast.FunctionDef)
    transform = _Shortened(form)
    finish = next(i for i, one in enumerate(road.body) if isinstance(one, ast.Try)) + 1
    for one in road.body[finish if form.part == "finish" else 1:finish if form.part == "compute" else None]:
        function.body += [made for made in _as_list(transform.visit(one)) if not isinstance(made, ast.Pass)]
    return ast.unparse(ast.fix_missing_locations(function))


def generate() -> str:
    """The text of ``short_roads.py``."""
    texts = []
    for form in FORMS:
        tree = ast.parse((RECORD / "road.py").read_text())
        road = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "road")
        texts.append(shortened(form, road))
    return "\n\n\n".join((HEADER, *texts)).replace("\n\n\n\n", "\n\n\n") + "\n"
