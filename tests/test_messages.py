"""The texts of refusals, as users read them: ``messages.txt`` holds calls and what they say.

``python tests/test_messages.py`` writes the answers anew (read the difference before keeping it). The calls
run on the CPU and on the GPU (or its stand-in), where the texts are the same.
"""

import math
import re
from pathlib import Path

import pytest
from test_cuda import cupy  # noqa: F401

import framework as fw
from framework.errors import DeviceError, ShapeError

PATH = Path(__file__).with_name("messages.txt")
HEAD = """Calls that are refused, and what they say: the op, the argument, what came, what was wanted.
ones, ints (0, 1, 2, ...), trues and recorded (ones that require grad) make tensors of a size on the device.
Written by `python tests/test_messages.py`.
"""
UNSEEN = "where an index points is not looked at on the GPU: that would wait for it at every call"
DIFFERENT_ON_THE_GPU = {
    "ones(2, 3).index_select(1, ints(4))": UNSEEN,
    "ones(2, 3).gather(1, ints(2, 5) + 7)": UNSEEN,
    "ones(2, 3).take(ints(2) + 10)": UNSEEN,
    "ones(2, 3).scatter_(1, ints(2, 2), ones(2, 1))": UNSEEN,
    "ones(2, 3).index_add(0, ints(3), ones(2, 3))": UNSEEN,
    "ints(2) // 0": "what a divisor is is not looked at on the GPU, for the same reason",
    "fw.func.vmap(lambda x: x.item())(ones(3))": "on the GPU one example is run after the other",
}
# texts without a value that came: what is wrong is the state of the tensor, or an argument that was left out
NO_VALUE = {
    "ones(2).clamp()",
    "fw.cat([])",
    "ints(3) ** (ints(3) - 2)",
    "walked(recorded(2)).backward()",
    "recorded(2).numpy()",
    "fw.tensor([[1.0], [2.0, 3.0]])",
    "fw.as_tensor([[1], [2, 3]])",
    "fw.arange()",
    "fw.from_dlpack([1, 2])",
    "fw.stack([])",
    "fw.tensor(object())",
    "ones(2, 3)[1.0]",
    "fw.nn.utils.rnn.pad_sequence([])",
    "fw.optim.LBFGS([recorded(2)]).step()",
    "fw.optim.lr_scheduler.OneCycleLR(fw.optim.SGD([recorded(2)], lr=0.1), max_lr=1.0)",
    "fw.utils.data.DataLoader([1, 2], shuffle=True, sampler=[0, 1])",
    "fw.autograd.gradcheck(lambda x: x * 2, (ones(2),))",
    "recorded(2).requires_grad_(False).sum().backward()",
    "(recorded(2) * 2).requires_grad_(False)",
}


def calls() -> list[str]:
    """The calls of the file, in its order."""
    return re.findall(r"^>>> (.*)$", PATH.read_text(encoding="utf-8"), re.M)


class Names(dict):
    """What the calls may use, on one device."""

    def __init__(self, device: str) -> None:
        super().__init__(fw=fw, F=fw.nn.functional, device=device)
        self["ones"] = lambda *size: fw.ones(*size, device=device)
        self["ints"] = lambda *size: fw.arange(math.prod(size), device=device).reshape(size)
        self["trues"] = lambda *size: fw.ones(*size, device=device) > 0
        self["recorded"] = lambda *size: fw.ones(*size, device=device, requires_grad=True)
        self["changed"] = lambda x: (y := x.exp(), y.add_(1))[0]
        self["walked"] = lambda x: (y := x.exp().sum(), y.backward())[0]


def answer(call: str, device: str) -> str:
    """The call's refusal: the class, the text, and the notes."""
    try:
        result = eval(call, {}, Names(device))  # the calls stand in our own file
    except Exception as error:
        lines = [
            f"{type(error).__name__}: {error}",
            *[f"  ({note})" for note in getattr(error, "__notes__", ())],
        ]
        return "\n".join(lines)
    raise AssertionError(f"{call} was not refused; it gave {result}")


def written() -> str:
    """The text of the file with the answers of now."""
    return HEAD + "".join(f"\n>>> {call}\n{answer(call, 'cpu')}\n" for call in calls())


def test_there_are_many():
    found = calls()
    assert len(found) == len(set(found)) >= 250


def test_texts():
    now, kept = written().split("\n\n"), PATH.read_text(encoding="utf-8").split("\n\n")
    assert now == kept, "\n\n".join(text for text in now if text not in kept)


def test_texts_on_the_gpu(cupy):  # noqa: F811
    """The same, but for the device's name, where the device itself is what is wrong."""
    different = []
    for call in calls():
        if call in DIFFERENT_ON_THE_GPU:
            continue
        try:
            here, there = answer(call, "cpu"), answer(call, "cuda").replace("'cuda:0'", "'cpu'")
        except (DeviceError, NotImplementedError):
            continue
        except AssertionError as error:
            different.append(str(error))
            continue
        if here.replace("cuda:0", "cpu") != there.replace("cuda:0", "cpu"):
            different.append(f"{call}\n  cpu:  {here}\n  cuda: {there}")
    assert not different, "\n".join(different)


def test_every_text_says_what_to_look_at():
    """An op (or a layer), and a value that came: a number, a shape, a dtype or a type."""
    value = re.compile(r"\d|framework\.\w+|got \w+|'[^']+'|\bstr\b|\bstr_\b")
    weak = {call for call in calls() if not value.search(answer(call, "cpu").split(":", 1)[1])}
    assert weak == NO_VALUE, weak ^ NO_VALUE


LOSSES = [
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "kl_div",
    "poisson_nll_loss",
    "soft_margin_loss",
    "hinge_embedding_loss",
    "multilabel_soft_margin_loss",
]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(
    "shapes", [((4, 1), (4,)), ((4,), (4, 1)), ((4, 3), (3,)), ((4, 3), (1, 3)), ((4,), ())]
)
def test_losses_do_not_broadcast(name, shapes):
    """A column of predictions against a row of targets is a mistake, not a table of differences."""
    with pytest.raises(
        ShapeError, match=f"{name}: target has shape .* but input has shape .* not broadcast here"
    ):
        getattr(fw.nn.functional, name)(*[fw.ones(*shape) * 0.5 for shape in shapes])


if __name__ == "__main__":
    PATH.write_text(written(), encoding="utf-8")
