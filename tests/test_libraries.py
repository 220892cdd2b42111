"""What published libraries lean on, found by running their own tests under ``framework.as_torch``."""

import sys

import pytest
from test_as_torch import run

import framework as fw


def test_classes_say_that_they_are_of_torch(tmp_path):
    out = run("""
import pickle, torch
x = torch.nn.Parameter(torch.ones(2))
for kind in (torch.Tensor, type(x), type(x.dtype), type(x.device), type(x.shape)):
    print(kind.__module__, kind.__name__)
print(all(pickle.loads(pickle.dumps(thing)) == thing for thing in (torch.Tensor, torch.float32, x.shape)))
torch.save({"x": x}, "x.pt")
print(type(torch.load("x.pt")["x"]) is torch.nn.Parameter)
import framework.as_torch
framework.as_torch.uninstall()
print(framework.Tensor.__module__, framework.nn.Parameter.__module__, framework.dtype.__name__)
""", cwd=tmp_path)
    assert out.split("\n")[:8] == ["torch Tensor", "torch.nn.parameter Parameter", "torch dtype",
                                   "torch device",
                                   "torch Size", "True", "True",
                                   "framework.tensor framework.nn.parameter DType"]


def test_old_calls_with_the_number_in_front():
    out = run("""
import warnings
import torch, torch.fx
warnings.simplefilter("ignore")
a, b = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
print(torch.ones(2).add_(10, a).tolist(), torch.ones(2).addcmul_(2, a, b).tolist(), a.sub(2, b).tolist())
print(a.add(2, b).tolist(), a.addcdiv(2, b, a).tolist(), a.add(b, alpha=2).tolist())
m = torch.eye(2)
print(torch.fx.symbolic_trace(lambda x: torch.add(x, x))(m).tolist(), m.addmm(2, 3, m, m).tolist(),
      m.clone().addmm_(2, m, m).tolist())
for wrong in (lambda: a.add_(1, 2), lambda: a.addcmul_(1), lambda: a.add(a, b, a)):
    try:
        wrong()
    except TypeError as error:
        print("refused")
print(a.tolist())
warnings.simplefilter("error")
try:
    a.add_(1, b)
except UserWarning as warning:
    print(warning)
import framework.as_torch
framework.as_torch.uninstall()
try:
    a.add_(1, b)
except TypeError:
    print("plain")
""")
    assert out.split("\n")[:-1] == [
        "[11.0, 21.0] [7.0, 21.0] [-5.0, -8.0]", "[7.0, 12.0] [7.0, 7.0] [7.0, 12.0]",
        "[[2.0, 0.0], [0.0, 2.0]] [[5.0, 0.0], [0.0, 5.0]] [[3.0, 0.0], [0.0, 3.0]]",
        "refused", "refused", "refused", "[1.0, 2.0]",
        "add_: the number in front is PyTorch's old way; write alpha= at the end", "plain"]


def test_adagrad_has_its_sums_before_the_first_step():
    w = fw.ones(2, requires_grad=True)
    optimizer = fw.optim.Adagrad([w], initial_accumulator_value=0.5)
    assert optimizer.state[w]["step"] == 0 and optimizer.state[w]["sum"].tolist() == [0.5, 0.5]
    lazy = fw.nn.LazyLinear(2)
    assert not fw.optim.Adagrad(lazy.parameters()).state[lazy.weight]


def test_lists_among_the_options_of_a_loaded_optimizer_are_its_own():
    kept = fw.optim.SGD([{"params": [fw.ones(1)], "buffer": [[0]]}], lr=0.1).state_dict()
    optimizer = fw.optim.SGD([{"params": [fw.ones(1)], "buffer": [[1]]}], lr=0.1)
    optimizer.load_state_dict(kept)
    optimizer.param_groups[0]["buffer"][0][0] = 5
    assert kept["param_groups"][0]["buffer"] == [[0]]


def test_a_parameter_may_stand_behind_a_property_that_cannot_be_set():
    class Base(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.k = fw.nn.Parameter(fw.ones(1))

    class Hyperbolic(Base):
        @property
        def k(self):
            return -self._parameters["k"] if "k" in self._parameters else super().k

    module = Hyperbolic()
    assert module.k.tolist() == [-1.0] and [n for n, _ in module.named_parameters()] == ["k"]


def test_nothing_is_a_script_module():
    assert not isinstance(fw.nn.Linear(1, 1), (fw.jit.ScriptModule, fw.jit.ScriptFunction))
    assert issubclass(fw.jit.ScriptModule, fw.nn.Module)
    with pytest.raises(TypeError, match="jit.ScriptFunction: functions are not scripted here"):
        fw.jit.ScriptFunction()


def test_negative_repeats_are_a_runtime_error():
    with pytest.raises(RuntimeError, match="repeat"):
        fw.tensor(1).repeat(-1)


def test_parts_of_complex_numbers_can_be_assigned_to():
    z = fw.tensor([1 + 2j, 3 + 4j])
    z.imag = z.imag * 2
    z.real = 0
    assert z.tolist() == [4j, 8j]
    x = fw.ones(2)
    x.real = fw.tensor([3.0, 4.0])
    assert x.tolist() == [3.0, 4.0]
    with pytest.raises(RuntimeError, match="no imaginary part"):
        x.imag = 1
    w = fw.ones(2, requires_grad=True)
    made = fw.zeros(2, dtype=fw.complex64)
    made.imag = w * 3
    made.abs().sum().backward()
    assert w.grad.tolist() == [3.0, 3.0]


def test_torch_onnx_is_ours():
    out = run("""
import torch.onnx
import framework.onnx
print(torch.onnx.export is framework.onnx.export)
""")
    assert out == "True\n"


def test_detach_is_a_function_too():
    x = fw.ones(2, requires_grad=True)
    y = fw.detach(x)
    assert not y.requires_grad and y.data_ptr() == x.data_ptr()


def test_places_inside_of_pytorch(tmp_path):
    """What torchvision and others import from the inside of PyTorch, before anything of it is used."""
    out = run("""
import torch, torch._custom_ops, torch._dynamo, torch.onnx, torch.types
from torch._dynamo.utils import is_compile_supported
from torch.hub import _get_torch_home
from torch.jit.annotations import Any, BroadcastingList2, Dict, List, Optional, Tuple, Union
from torch.onnx import symbolic_opset11
from torch.onnx.symbolic_helper import parse_args
from torch.types import _device, _dtype, _size
from torch.utils.model_zoo import tqdm
assert List[int].__origin__ is list and Optional[int] == Union[int, None] and Tuple and Dict and Any
assert isinstance(torch.float32, _dtype) and isinstance(torch.device("cpu"), _device)
assert _get_torch_home() + "/hub" == torch.hub.get_dir()
assert not is_compile_supported("cpu")
assert torch._dynamo.disable(abs)(-1) == 1 and not torch._dynamo.is_compiling()
assert parse_args("v", "i")(abs) is abs and BroadcastingList2[int] is None
torch.onnx.register_custom_op_symbolic("a::b", abs, 11)
torch.onnx.unregister_custom_op_symbolic("a::b", 11)
assert not torch.onnx.is_in_onnx_export()
for module, name in ((symbolic_opset11, "squeeze"), (torch._custom_ops, "get_ctx")):
    assert not hasattr(module, name)
keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
both = keys | torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
assert both.has(torch._C.DispatchKey.CPU) and not (both - keys).has(torch._C.DispatchKey.AutocastCPU)
assert (both & keys).has(torch._C.DispatchKey.AutocastCPU)
assert torch._C._LinAlgError is torch.linalg.LinAlgError
assert torch._C._log_api_usage_once("x") is None and torch._C._get_tracing_state() is None
double = torch.library.custom_op("mine::double", lambda x: 2 * x, mutates_args=())
print(torch.ops.mine.double(torch.ones(1)), hasattr(torch.ops.mine, "triple"))
try:
    torch.ops.load_library("x.so")
except OSError as error:
    print(error)
assert torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
""")
    assert out.split("\n")[:2] == [
        "tensor([2.]) False",
        "ops.load_library: x.so registers its operators in PyTorch's C++ core, which is not here; write them "
        "in Python with library.custom_op, or in C++ with utils.cpp_extension.load"]


def test_subclasses_of_parameter_choose_their_arguments():
    class Placed(fw.nn.Parameter):
        def __new__(cls, data, place=None, requires_grad=True):
            made = super().__new__(cls, data, requires_grad=requires_grad)
            made.place = place
            return made

    x = Placed(fw.ones(2), place="here")
    assert (x.place, x.requires_grad, type(x)) == ("here", True, Placed)
    net = fw.nn.Module()
    net.x = x
    assert [p is x for p in net.parameters()] == [True]


def test_what_libraries_pass_and_pytorch_takes():
    x = fw.arange(12.0).view(3, 4)
    assert x[[..., slice(0, 2)]].shape == (3, 2) and x[[None, 0]].shape == (1, 4)
    out = fw.empty(0)
    assert fw.amax(x, 0, keepdim=True, out=out) is out and out.tolist() == [[8, 9, 10, 11]]
    with pytest.raises(ValueError, match="out="):
        fw.amax(x, 0, out=fw.empty(3))
    whole = fw.nn.functional.normalize(x, dim=(0, 1))
    assert abs(whole.square().sum().item() - 1) < 1e-6 and fw.allclose(whole, x / x.norm())
    a, b = fw.eye(3), fw.ones(3, 3)
    assert fw.equal(fw.nn.functional.cosine_embedding_loss(a, b, fw.ones(1)),
                    fw.nn.functional.cosine_embedding_loss(a, b, fw.ones(3)))
    size = sys.getsizeof(x.untyped_storage())
    assert size - sys.getsizeof(fw.ones(0).untyped_storage()) == x.nbytes


def test_functions_for_lists_of_tensors():
    xs, ys = [fw.tensor([4.0, 9.0]), fw.tensor(2.0)], [fw.tensor([1.0, 2.0]), fw.tensor(3.0)]

    def values(tensors):
        return [t.tolist() for t in tensors]

    assert values(fw._foreach_sqrt([xs[0]])) == [[2, 3]] and values(xs) == [[4, 9], 2]
    assert values(fw._foreach_add(xs, ys, alpha=2)) == [[6, 13], 8]
    assert values(fw._foreach_mul(xs, 2)) == values(fw._foreach_mul(xs, [2, 2.0])) == [[8, 18], 4]
    assert values(fw._foreach_mul(xs, fw.tensor(2.0))) == [[8, 18], 4]
    assert values(fw._foreach_addcmul(xs, ys, ys, [1, 2])) == [[5, 13], 20]
    assert values(fw._foreach_addcdiv(xs, ys, ys, value=2)) == [[6, 11], 4]
    assert values(fw._foreach_lerp(xs, ys, 0.5)) == [[2.5, 5.5], 2.5]
    assert values(fw._foreach_pow(2.0, ys)) == [[2, 4], 8] and values(fw._foreach_norm(ys[1:])) == [3]
    same = fw._foreach_maximum(xs, 3)
    assert values(same) == [[4, 9], 3] and fw._foreach_add_(xs, 1) is None and values(xs) == [[5, 10], 3]
    fw._foreach_copy_(xs, ys)
    assert values(xs) == values(ys) and fw._foreach_zero_(xs) is None and values(xs) == [[0, 0], 0]
    with pytest.raises(RuntimeError, match="2 tensors and a list of 1"):
        fw._foreach_add_(xs, [1.0])
    assert not hasattr(fw, "_foreach_nothing")
