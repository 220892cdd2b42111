"""Public functions and methods take PyTorch's arguments: the same names in the same places.

What PyTorch takes is read from PyTorch: Python's own signature where there is one, else the stubs that
come with it (the names its parser knows), else the schemas of its operators. Every argument that some
overload has must be one of ours, or stand in ``LACKING`` with the reason, and those that may be given
without their names must stand in the same places.
"""

import ast
import inspect
from functools import cache, reduce
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import framework as fw
from framework.ops import PUBLIC

torch = pytest.importorskip("torch")

# hints for the memory of a result, named dimensions, what PyTorch has given up or keeps to itself
NEVER = {"generator", "layout", "memory_format", "pin_memory", "names", "size_average", "reduce",
         "_stacklevel", "implicit"}
GIVEN_UP = {"size_average", "reduce", "_stacklevel"}  # after these, PyTorch's places are not for use
POSITIONAL_ONLY = {"framework.einsum", "framework.from_numpy"}  # PyTorch takes no names there
UNSAID = "PyTorch's parser takes it, its documentation does not have it"
GPU_ONLY = "chooses among cuSOLVER's and cuBLAS's routines"
RESERVED = "a reserved word: ours are low and high; **{'from': a, 'to': b} works as well"

# namespace.name, or name -> {argument of PyTorch: why ours has none}
LACKING = {
    "Tensor.random_": {"from": RESERVED, "to": RESERVED},
    "Tensor.uniform_": {"from": RESERVED, "to": RESERVED},
    "Tensor.to": {"other": "PyTorch's parser does not take this name either"},
    "framework.tril_indices": {"requires_grad": "integers have no gradient"},
    "framework.triu_indices": {"requires_grad": "integers have no gradient"},
    "framework.unique_consecutive": {"out": "a slip of the schema: PyTorch's parser takes none"},
    "nn.functional.one_hot": {"tensor": "a slip of the stub: PyTorch's parser wants input"},
    **dict.fromkeys(("mm", "bmm", "addmm", "baddbmm"), {"out_dtype": GPU_ONLY}),
    **dict.fromkeys(("linalg.svd", "linalg.svdvals"), {"driver": GPU_ONLY}),
    "framework.hardshrink": {"out": UNSAID},
    "framework.result_type": dict.fromkeys(("scalar", "scalar1", "scalar2"), "either may be a number here"),
    **{f"nn.functional.{name}": {"out": UNSAID} for name in (
        "adaptive_avg_pool1d", "avg_pool1d", "channel_shuffle", "conv_tbc", "hardshrink", "pixel_shuffle",
        "pixel_unshuffle")},
    **{f"framework.{name}": {"out": UNSAID} for name in ("threshold", "native_batch_norm")},
}
BY_NAME = "out= and dtype= are by name only"
# namespace.name -> why an argument stands in another place than PyTorch's
PLACES = {
    "framework.arange": "arange(end) puts the end first; both forms work",
    "framework.randint": "randint(high, size) puts the end first; both forms work",
    "framework.randint_like": "randint_like(input, high) puts the end second; both forms work",
    "framework.norm": BY_NAME, "Tensor.norm": BY_NAME, "framework.tensordot": BY_NAME,
    "nn.functional.normalize": BY_NAME,
    **dict.fromkeys(("framework.subtract", "Tensor.subtract", "framework.rsub"), "alpha is by name only"),
    **dict.fromkeys(("framework.tensor", "Tensor.new_tensor", "Tensor.new_ones"),
                    "a slip of the stub: PyTorch's parser takes dtype by name only"),
    **{f"{home}.{name}": "told apart by what they are" for home in ("framework", "Tensor")
       for name in ("max", "min", "scatter", "var", "std", "var_mean", "std_mean")},
    **dict.fromkeys(("nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d"),
                    "a slip of the stub: PyTorch's function takes output_ratio and return_indices before"),
    "framework.repeat_interleave": "with one argument, that is repeats",
    "framework.normal": "normal(mean, std) and normal(mean, std, size) are one function",
    "Tensor.random_": "random_(to) and random_(from, to) are one function",
    "Tensor.to": "told apart by what they are",
}
# namespace.name, or name -> {argument of ours: why PyTorch has none}
FURTHER = {
    **{name: {"low": RESERVED, "high": RESERVED, "bounds": RESERVED} for name in ("random_", "uniform_")},
    "Tensor.to": {"args": "told apart by what they are"},
    **{f"framework.{name}": {"inplace": "one function with that of nn.functional"} for name in (
        "rrelu", "celu", "selu", "threshold")},
    "true_divide": {"rounding_mode": "an alias of div"},
    "nn.functional.one_hot": {"input": "a slip of the stub: PyTorch's parser wants input"},
    **dict.fromkeys(("nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d"),
                    dict.fromkeys(("output_ratio", "return_indices"), "a slip of the stub")),
    **dict.fromkeys(("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "max_pool1d",
                     "max_pool2d", "max_pool3d"),
                    {"return_indices": "PyTorch chooses between two functions by it"}),
}


class Takes(NamedTuple):
    """The arguments of a function: those that may be given by place, and all."""

    places: list[str]
    names: list[str]

    def __str__(self) -> str:
        return f"({', '.join(self.names)})"


@cache
def stub(path: str, kind: str | None) -> dict[str, list[Takes]]:
    """The overloads in a stub file of PyTorch: functions of the module, or methods of a class."""
    body = ast.parse(Path(torch.__file__).with_name("_C").joinpath(path).read_text()).body
    if kind is not None:
        body = next(n for n in body if isinstance(n, ast.ClassDef) and n.name == kind).body
    found: dict[str, list[Takes]] = {}
    for n in body:
        if isinstance(n, ast.FunctionDef):
            star = [n.args.vararg.arg] if n.args.vararg else []
            places = [a.arg.rstrip("_") for a in n.args.posonlyargs + n.args.args] + star
            takes = Takes(places, places + [a.arg for a in n.args.kwonlyargs])
            if kind is not None or "self" not in takes.names:  # such overloads of functions are given up
                found.setdefault(n.name, []).append(takes)
    return found


def from_python(function) -> Takes:
    """The arguments of a function with a Python signature; those PyTorch has given up end the places."""
    parameters = inspect.signature(function).parameters.values()
    places = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    end = next((i for i, name in enumerate(places) if name in GIVEN_UP), len(places))
    return Takes(places[:end], [p.name for p in parameters])


def from_schema(schema) -> Takes:
    """The arguments of an operator; its results' arguments are the one ``out``, its ``self`` is ``input``."""
    called = {a.name: "input" if a.name == "self" else a.name for a in schema.arguments}
    names = [called[a.name] for a in schema.arguments if not a.is_out]
    out = ["out"] * any(a.is_out for a in schema.arguments)
    places = [called[a.name] for a in schema.arguments if not a.is_out and not a.kwarg_only]
    return Takes(places, names + out)


def home_of(namespace: str):
    """PyTorch's module of that name."""
    if namespace in ("", "Tensor"):
        return torch.Tensor
    return torch if namespace == "framework" else reduce(getattr, namespace.split("."), torch)


def overloads(namespace: str, name: str) -> list[Takes]:
    """What PyTorch's function takes."""
    home = home_of(namespace)
    function = getattr(home, name, None)
    if function is None or f"{namespace}.{name}" in POSITIONAL_ONLY:
        return []
    try:
        found = from_python(function)
    except (ValueError, TypeError):
        found = None
    if found is not None and "args" not in found.names:
        return [found]
    if home is torch.Tensor:
        return stub("__init__.pyi", "TensorBase").get(name, [])
    files = {"framework": "_VariableFunctions.pyi", "nn.functional": "_nn.pyi"}
    if namespace in files and name in stub(files[namespace], None):
        return stub(files[namespace], None)[name]
    prefix = f"{namespace}_" if namespace in ("linalg", "special", "fft") else ""
    schema = f"aten::{prefix}{name}"
    return [from_schema(s) for s in torch._C._jit_get_schemas_for_operator(schema)]


def cases():
    """(where it is, name, function) of everything that is checked."""
    for p in PUBLIC:
        if p.namespace:
            yield p.namespace, p.name, p.function
        for method in p.methods:
            if not p.property and not method.startswith("__"):
                yield "Tensor", method, getattr(fw.Tensor, method)
    homes = ("framework.creation", "framework.from_data")
    for name, value in vars(fw).items():
        if getattr(value, "__module__", "") in homes and hasattr(torch, name):
            yield "framework", name, value
    for name in ("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor"):
        yield "Tensor", name, getattr(fw.Tensor, name)


def excused(table, namespace, name):
    return {**table.get(name, {}), **table.get(f"{namespace}.{name}", {})}


def differences(namespace, name, function):
    """What keeps calls written for PyTorch from working, a sentence each."""
    ours, first = from_python(function), 1 if namespace == "Tensor" else 0
    also = getattr(function, "also", {})
    lacking = {*NEVER, *excused(LACKING, namespace, name)}
    for theirs in overloads(namespace, name):
        missing = [a for a in theirs.names[first:] if a not in {*ours.names, *also, *lacking}]
        if missing:
            yield f"lacks {', '.join(missing)}; PyTorch {theirs}, ours {ours}"
        mine = [also.get(a, a) for a in ours.places[first:]]
        wanted = [also.get(a, a) for a in theirs.places[first:] if a not in NEVER]
        if mine[:len(wanted)] != wanted and not (
                missing or f"{namespace}.{name}" in PLACES or {*theirs.places} & (lacking - NEVER)):
            yield f"wants {', '.join(theirs.places)} in these places; PyTorch {theirs}, ours {ours}"


def test_arguments_are_those_of_pytorch():
    wrong = sorted({f"{namespace}.{name}: {what}" for namespace, name, function in cases()
                    for what in differences(namespace, name, function)})
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)


def test_no_further_arguments():
    """An argument that PyTorch does not have is on purpose (``out`` may be more widely known)."""
    wrong = set()
    for namespace, name, function in cases():
        known = {a for theirs in overloads(namespace, name) for a in theirs.names}
        also = getattr(function, "also", {})
        for a in from_python(function).names[1 if namespace == "Tensor" else 0:]:
            names = {a, *(k for k, v in also.items() if v == a)}
            if known and not names & known and a not in {
                    *excused(FURTHER, namespace, name), *NEVER, "out"}:
                wrong.add(f"{namespace}.{name}: {a}")
    assert not wrong, f"{len(wrong)} arguments that PyTorch does not have:\n" + "\n".join(sorted(wrong))


@pytest.mark.parametrize("call", [
    lambda M, x: M.reshape(input=x, shape=(3, 2)),
    lambda M, x: x.view(size=(6,)),
    lambda M, x: x.view(dtype=M.int32),
    lambda M, x: x.permute(dims=(1, 0)),
    lambda M, x: x.expand(size=(4, 2, 3)),
    lambda M, x: x.repeat(repeats=(2, 1)),
    lambda M, x: M.tile(x, dims=(2,)),
    lambda M, x: M.flip(x, dims=(0, 1)),
    lambda M, x: M.zeros(size=(2, 1)) + M.ones(size=(2, 1)),
    lambda M, x: x.new_full(size=(2,), fill_value=3.0) + x.new_zeros(size=(2,)),
    lambda M, x: M.arange(end=4),
    lambda M, x: M.arange(start=1, end=4, step=2),
    lambda M, x: M.randint(high=1, size=(2,)) + M.randint(1, size=(2,)) + M.randint(0, high=1, size=(2,)),
    lambda M, x: M.randint_like(x, high=1),
    lambda M, x: M.add(input=x, other=x, alpha=2),
    lambda M, x: M.rsub(x, other=1.0, alpha=3),
    lambda M, x: M.pow(input=x, exponent=2),
    lambda M, x: M.where(condition=x > 0, input=x, other=-x),
    lambda M, x: M.split(tensor=x, split_size_or_sections=1)[1],
    lambda M, x: x.split(split_size=2, dim=1)[0],
    lambda M, x: M.hsplit(x, sections=3)[1],
    lambda M, x: M.tensor_split(x, indices=(1,), dim=1)[1],
    lambda M, x: M.det(input=x[:, :2]),
    lambda M, x: M.linalg.det(A=x[:, :2]),
    lambda M, x: M.linalg.eigvalsh(input=M.eye(2)),
    lambda M, x: M.linalg.pinv(x, 1e-3),
    lambda M, x: M.linalg.pinv(x, atol=0.1, hermitian=False),
    lambda M, x: M.dot(input=x[0], tensor=x[1]) + M.vdot(x[0], other=x[1]),
    lambda M, x: M.isin(element=1.0, test_elements=x),
    lambda M, x: M.zeros(2, 3).copy_(other=x),
    lambda M, x: x.to("cpu", M.float64, False, True),
    lambda M, x: M.nn.functional.bilinear(input1=x, input2=x, weight=M.ones(1, 3, 3), bias=None),
    lambda M, x: M.nn.Bilinear(3, 3, 2)(input1=x, input2=x) * 0,
    lambda M, x: M.nn.Linear(3, 2)(input=x) * 0,
])
def test_calls_by_name(call):
    """Calls that only work with PyTorch's names give what they give there."""
    mine = call(fw, fw.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, 0.5]]))
    theirs = call(torch, torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, 0.5]]))
    np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("call, empty", [
    (lambda M, x, out: M.exp(x, out=out), lambda M: M.empty(2, 3)),
    (lambda M, x, out: M.sum(x, dim=0, out=out), lambda M: M.empty(3)),
    (lambda M, x, out: M.mean(x, 1, out=out), lambda M: M.empty(2)),
    (lambda M, x, out: M.cumsum(x, 0, out=out), lambda M: M.empty(2, 3)),
    (lambda M, x, out: M.index_select(x, 0, M.tensor([1]), out=out), lambda M: M.empty(1, 3)),
    (lambda M, x, out: M.softmax(x, 0, out=out), lambda M: M.empty(2, 3)),
    (lambda M, x, out: M.linalg.norm(x, out=out), lambda M: M.empty(())),
    (lambda M, x, out: M.where(x > 0, x, x * 2, out=out), lambda M: M.empty(2, 3)),
    (lambda M, x, out: M.ones(2, 3, out=out), lambda M: M.empty(2, 3)),
    (lambda M, x, out: M.sort(x, 1, out=out), lambda M: (M.empty(2, 3), M.empty(2, 3, dtype=M.int64))),
    (lambda M, x, out: M.max(x, 1, out=out), lambda M: (M.empty(2), M.empty(2, dtype=M.int64))),
    (lambda M, x, out: M.linalg.qr(x, out=out), lambda M: (M.empty(2, 2), M.empty(2, 3))),
])
def test_results_go_into_out(call, empty):
    values = []
    for M in (fw, torch):
        x, out = M.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, 0.5]]), empty(M)
        result = call(M, x, out)
        many, given = (result, out) if isinstance(out, tuple) else ((result,), (out,))
        assert all(a is b for a, b in zip(many, given)), "the result is out itself"
        values.append([np.abs(a.numpy()) for a in many])
    for a, b in zip(*values):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("call, kind, text", [
    (lambda: fw.sum(fw.ones(2, 3), 0, out=fw.zeros(2)), fw.errors.ShapeError, "out= has [2]"),
    (lambda: fw.sum(fw.ones(2, 3), out=fw.zeros((), dtype=fw.int64)), fw.errors.DTypeError, "float32"),
    (lambda: fw.sum(fw.ones(2, requires_grad=True), out=fw.zeros(())), RuntimeError, "no_grad"),
    (lambda: fw.sum(fw.ones(2), out=[0.0]), TypeError, "out must be a Tensor, got list"),
    (lambda: fw.sort(fw.ones(2), out=fw.zeros(2)), TypeError, "out must be 2 Tensors, got Tensor"),
    (lambda: fw.reshape(fw.ones(2), size=(2,)), TypeError, "size"),
    (lambda: fw.arange(), TypeError, "no end"),
])
def test_wrong_arguments(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)
