"""NumPy's names ``axis=`` and ``keepdims=`` are taken where PyTorch takes them, and mean what its own do.

The calls are those of the sample table: the first one of each function that gives the argument.
"""

import inspect
from functools import reduce

import numpy as np
import pytest
from table import ROWS, cast_inputs, changes_inputs, flat, numpy_of, tensors

import framework as fw
from framework.ops import PUBLIC
from framework.ops.record.public import NUMPY_NAMES

NOT_BY_PLACE = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL)


class Found(Exception):
    """Carries the arguments of a call."""


class Spy:
    """A module whose function at ``path`` stops at the first call that gives the argument ``own``."""

    def __init__(self, module, path, own):
        self.module, self.path, self.own = module, path, own

    def __getattr__(self, name):
        value = getattr(self.module, name)
        if name != self.path[0]:
            return value
        return self.call if len(self.path) == 1 else Spy(value, self.path[1:], self.own)

    def call(self, *args, **settings):
        function = getattr(self.module, self.path[0])
        bound = inspect.signature(function).bind(*args, **settings).arguments
        if self.own in bound:
            raise Found(bound)
        return function(*args, **settings)


def path_of(namespace, name):
    return [name] if namespace == "framework" else [*namespace.split("."), name]


def found_call(function, own):
    """The arguments of a call of the public function in the sample table that gives ``own``, or None."""
    homes = [(p.namespace, p.name) for p in PUBLIC if p.function is function and p.namespace]
    for row in (r for r in ROWS if (r.namespace, r.name) in homes and not changes_inputs(r)):
        for sample in (s for s in row.samples if s.torch):
            spy = Spy(fw, path_of(row.namespace, row.name), own)
            try:
                sample.call(spy, *tensors(cast_inputs(sample, np.float64)))
            except Found as found:
                return found.args[0]
    return None


def cases():
    for public in PUBLIC:
        parameters = inspect.signature(public.function).parameters if public.namespace else {}
        for name, own in NUMPY_NAMES.items():
            if own in parameters:
                yield public, name, own


def converted(value, M):
    """The argument for ``M``."""
    if isinstance(value, fw.Tensor):
        return value if M is fw else M.from_numpy(np.array(value.numpy()))
    if isinstance(value, fw.dtypes.DType):
        return getattr(M, value.name)
    return type(value)(converted(v, M) for v in value) if type(value) in (list, tuple) else value


def called(M, public, bound, own, name, method):
    """The result of the call on ``M`` with ``own`` called ``name``, as arrays; None if that is refused."""
    parameters = inspect.signature(public.function).parameters.values()
    order = [p.name for p in parameters if p.kind not in NOT_BY_PLACE]
    places, names = [], {}
    for key, value in bound.items():
        if names or key == own or order[len(places):len(places) + 1] != [key]:
            names[name if key == own else key] = converted(value, M)
        else:
            places.append(converted(value, M))
    path = path_of(public.namespace, public.name)
    home = places.pop(0) if method else reduce(getattr, path[:-1], M)
    try:
        return [numpy_of(y) for y in flat(getattr(home, public.name)(*places, **names))]
    except TypeError:
        return None


# the other arguments of functions that the sample table calls otherwise
ARGUMENT = {"dim": 0, "keepdim": True}
CALLS = {
    **dict.fromkeys(("max", "min", "logsumexp", "norm"), {"dim": 1}),
    "cross": {"other": fw.ones(3, 2, 3, dtype=fw.float64)},
    "split": {"split_size": 2},
    **dict.fromkeys(("split_with_sizes", "unsafe_split_with_sizes", "split_with_sizes_copy"),
                    {"split_sizes": [1, 2]}),
    **dict.fromkeys(("unsafe_split", "split_copy"), {"split_size": 2}),
    "unsafe_chunk": {"chunks": 2},
    "chunk": {"chunks": 2},
    "tensor_split": {"indices_or_sections": 2},
    "repeat_interleave": {"repeats": 2},
}


def made_call(public, own):
    """A call with the arguments of ``CALLS``."""
    first = next(iter(inspect.signature(public.function).parameters))
    x = fw.tensor(np.arange(18.0).reshape(3, 2, 3))
    return {first: x, **CALLS.get(public.name, {}), own: ARGUMENT[own]}


ONE_HERE = "two functions in PyTorch, one of which takes it; here they are one"
IN_PYTHON = "PyTorch's function is written in Python, where its parser does not rename arguments"
MORE = {
    **dict.fromkeys(("nn.functional.softmax", "nn.functional.log_softmax", "Tensor.unflatten"), ONE_HERE),
    **{f"{home}.{name}": IN_PYTHON for home in ("framework", "Tensor")
       for name in ("norm", "unique", "unique_consecutive", "split")},
}


@pytest.mark.filterwarnings("ignore:.*in beta:UserWarning")
def test_names_are_taken_where_pytorch_takes_them():
    torch = pytest.importorskip("torch", reason="PyTorch tells where it takes them: the compare extra")
    wrong, seen = [], 0
    for public, name, own in cases():
        bound = found_call(public.function, own) or made_call(public, own)
        for method in (False, True) if public.name in public.methods else (False,):
            where = f"{'Tensor' if method else public.namespace}.{public.name}"
            plain = called(fw, public, bound, own, own, method)
            ours = called(fw, public, bound, own, name, method)
            theirs = called(torch, public, bound, own, name, method)
            seen += theirs is not None
            if plain is None:
                wrong.append(f"{where}: no call of it to try {name}= with")
            elif (ours is None) != (theirs is None and where not in MORE):
                wrong.append(f"{where} {name}=: PyTorch {'takes' if ours is None else 'refuses'} it")
            elif not all(map(np.array_equal, ours or (), plain)):
                wrong.append(f"{where}: {name}= gives another result than {own}=")
    assert not wrong, "\n".join(wrong)
    assert seen > 150


def test_both_names_are_refused():
    x = fw.ones(2, 3)
    for call in (x.sum, lambda **names: fw.sum(x, **names), lambda **names: fw.cat([x], **names)):
        with pytest.raises(TypeError, match="axis= and dim= are one argument; give one"):
            call(dim=0, axis=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'axes'"):
        x.sum(axes=0)


def test_with_out_and_in_place():
    x, out = fw.tensor([[1.0, 2.0], [3.0, 4.0]]), fw.empty(1, 2)
    assert fw.sum(x, axis=0, keepdims=True, out=out) is out and out.tolist() == [[4.0, 6.0]]
    assert x.cumsum_(axis=1) is x and x.tolist() == [[1.0, 3.0], [3.0, 7.0]]
