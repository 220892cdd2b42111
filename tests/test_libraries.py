"""What published libraries lean on, found by running their own tests under ``framework.as_torch``."""

from test_as_torch import run


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
    assert out.split("\n")[:8] == ["torch Tensor", "torch.nn.parameter Parameter", "torch dtype", "torch device",
                                   "torch Size", "True", "True",
                                   "framework.tensor framework.nn.parameter DType"]
