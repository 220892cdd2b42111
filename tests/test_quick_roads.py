"""Calls that native code takes from the arguments to the tensor, beside the same calls the long way."""

import random
import warnings

import numpy as np
import pytest

import framework as fw
from framework import _native
from framework.ops.record import into
from framework.seam import intercept

VIEWS = {
    "view": lambda x: x.view(-1), "view two": lambda x: x.view(2, -1), "reshape": lambda x: x.reshape([4, 6]),
    "as another": lambda x: x.view_as(fw.zeros(6, 4)), "unsqueeze": lambda x: x.unsqueeze(-1),
    "unsqueeze first": lambda x: x.unsqueeze(0), "squeeze": lambda x: x[:, :1].squeeze(1),
    "squeeze all": lambda x: x[:1].squeeze(), "flatten": lambda x: x.flatten(1), "t": lambda x: x[0].t(),
    "T": lambda x: x.T, "mT": lambda x: x.mT, "transpose": lambda x: x.transpose(0, -1),
    "swapaxes": lambda x: x.swapaxes(1, 2), "permute": lambda x: x.permute(-1, 0, 1),
    "expand": lambda x: x[:, :1].expand(2, 2, -1, 4), "expand as": lambda x: x[:1].expand_as(x),
    "int": lambda x: x[-1], "range": lambda x: x[:, 1:3], "steps": lambda x: x[..., ::3],
    "new dimension": lambda x: x[None, :, 0, None], "dots": lambda x: x[1, ..., -2:],
    "far": lambda x: x[:, -9:9],
    "select": lambda x: x.select(-1, -2), "narrow": lambda x: x.narrow(1, -2, 2),
    "diagonal": lambda x: x.diagonal(1, 1, 2), "below": lambda x: x.diagonal(-1, 0, 2),
    "unfold": lambda x: x.unfold(1, 2, 1), "apart": lambda x: x.unfold(-1, 2, 2),
    "split": lambda x: x.split(2, 1)[1], "chunk": lambda x: x.chunk(3, -1)[1],
    "unbind": lambda x: x.unbind(1)[2],
    "iterate": lambda x: list(x)[1],
}


def _watched(f, *args):
    """``f`` as it goes while somebody looks: the long way."""
    with intercept(lambda event, proceed: proceed(*event.inputs, **event.settings)):
        return f(*args)


def _base(dense: bool) -> fw.Tensor:
    whole = fw.arange(48.0).reshape(2, 3, 8)
    return whole[..., :4].clone() if dense else whole[..., ::2]


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("name", VIEWS)
def test_views_are_those_of_the_long_way(name: str, dense: bool) -> None:
    make = VIEWS[name]
    try:
        want = _watched(make, _base(dense))
    except fw.errors.ShapeError:
        assert not dense
        with pytest.raises(fw.errors.ShapeError):
            make(_base(dense))
        return
    x = _base(dense)
    got = make(x)
    assert got.shape == want.shape and got.tolist() == want.tolist()
    assert [s for s, n in zip(got.stride(), got.shape) if n > 1] == \
        [s for s, n in zip(want.stride(), want.shape) if n > 1]
    assert got.is_contiguous() == want.is_contiguous()
    assert got._array.flags.writeable == want._array.flags.writeable
    assert (got._base is None) == (want._base is None)


@pytest.mark.parametrize("name", VIEWS)
def test_gradients_follow_views_that_are_written_to(name: str) -> None:
    make = VIEWS[name]
    if not make(_base(True))._array.flags.writeable:
        pytest.skip("its elements share places")
    found = []
    for long_way in (False, True):
        leaf = fw.arange(24.0).reshape(2, 3, 4).requires_grad_()
        x = leaf * 2

        def steps(x: fw.Tensor) -> fw.Tensor:
            y = make(x)
            y.mul_(y.detach() + 1)
            return y
        y = _watched(steps, x) if long_way else steps(x)
        ((x * x).sum() + y.sum()).backward()
        found.append((x.tolist(), leaf.grad.tolist()))
    assert found[0] == found[1]


def test_wrong_views_say_what_is_wrong() -> None:
    x = fw.ones(2, 3)
    for wrong in (lambda: x.view(4), lambda: x.view(-1, -1), lambda: x.view(-2, 3), lambda: x.permute(0, 0),
                  lambda: x.expand(3, 3), lambda: x.expand(-1, -1, 3), lambda: x.t().view(6)):
        with pytest.raises(fw.errors.ShapeError):
            wrong()
    for wrong in (lambda: x[2], lambda: x[0, 0, 0], lambda: x.transpose(0, 2), lambda: x.unsqueeze(4),
                  lambda: x.select(0, 2), lambda: x.narrow(0, 1, 2), lambda: x.unbind(2), lambda: x[:, :, 0]):
        with pytest.raises(IndexError):
            wrong()
    for wrong in (lambda: x.view(1.0, 6), lambda: x.split("a"), lambda: x.unsqueeze(True), lambda: x["a"]):
        with pytest.raises((TypeError, AttributeError, IndexError)):
            wrong()


def test_views_of_what_is_empty_or_has_no_dimensions() -> None:
    empty, number = fw.ones(0, 3), fw.tensor(2.0)
    assert empty.view(3, 0).shape == (3, 0) and empty.t().shape == (3, 0) and empty[:, 1:].shape == (0, 2)
    assert fw.ones(2, 3)[:, 2:2].shape == (2, 0) and number.view(1, 1).shape == (1, 1)
    assert number.unsqueeze(0).shape == (1,) and number.expand(2, 2).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert number[None].shape == (1,) and number[...].shape == () and number.squeeze(0).shape == ()


def test_a_base_forgets_views_that_are_gone() -> None:
    x = fw.ones(4)
    for _ in range(200):
        x.view(2, 2)
    assert len(x._more.views) < 70


@pytest.mark.parametrize("dtype", [fw.float32, fw.float64, fw.int64, fw.bool, fw.float16])
def test_writes_count_and_refuse(dtype: fw.dtype) -> None:
    x, y = fw.zeros(2, 3, dtype=dtype), fw.ones(2, 3, dtype=dtype)
    before = x._version
    assert x.copy_(y) is x and x.tolist() == y.tolist() and x._version == before + 1
    assert x.zero_() is x and not x.any() and x._version == before + 2
    x.fill_(1)
    assert x.tolist() == y.tolist()
    if dtype is not fw.bool:
        assert x.add_(y) is x and x.mul_(y).sub_(y).tolist() == y.tolist()
    if dtype.is_floating_point:
        with warnings.catch_warnings(action="error"):
            assert fw.zeros(1, dtype=fw.float32).fill_(1e300).item() == float("inf")
            assert x.fill_(-0.0).tolist() == [[0.0] * 3] * 2 and np.signbit(x.numpy()).all()
    frozen = fw.from_numpy(np.ones(3, np.float32))
    frozen._array.flags.writeable = False
    for write in (frozen.zero_, lambda: frozen.add_(frozen), lambda: frozen.copy_(fw.ones(3))):
        with pytest.raises(ValueError, match="read-only"):
            write()
    leaf = fw.ones(3, requires_grad=True)
    for write in (leaf.zero_, lambda: leaf.add_(leaf), lambda: leaf.copy_(fw.ones(3)),
                  lambda: leaf[1:].zero_(),
                  leaf.normal_):
        with pytest.raises(fw.errors.AutogradError):
            write()
    with fw.no_grad():
        assert leaf.add_(leaf).tolist() == [2.0] * 3


def test_writes_of_what_overlaps() -> None:
    x = fw.arange(6.0)
    x[1:].copy_(x[:-1])
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    x.add_(x.flip(0))
    assert x.tolist() == [4, 3, 3, 3, 3, 4]
    x = fw.arange(6.0)
    x.detach().add_(x.view(2, 3).view(6))
    assert x.tolist() == [0, 2, 4, 6, 8, 10]


def test_writes_into_what_backward_needs_are_noticed() -> None:
    x = fw.ones(3, requires_grad=True)
    for write in (lambda y: y.mul_(2.0), lambda y: y.copy_(fw.ones(3)), lambda y: y.zero_(),
                  lambda y: y.normal_(), lambda y: y.clamp_(0.0, 1.0)):
        kept = fw.ones(3)
        z = x * kept
        write(kept)
        with pytest.raises(fw.errors.AutogradError, match="changed in place"):
            z.sum().backward()


def test_shapes_are_cut_and_joined() -> None:
    shape = fw.ones(2, 3, 4).shape
    assert shape[0] == 2 and shape[-1] == 4 and shape[np.int64(1)] == 3
    assert shape[::-1] == (4, 3, 2) and shape[1:].numel() == 12 and shape[5:] == ()
    assert shape + (5,) == (2, 3, 4, 5)
    assert all(type(s) is fw.Size for s in (shape[1:], shape[5:], shape + (5,), (1,) + shape))
    with pytest.raises(IndexError):
        shape[3]
    for wrong in (lambda: shape["a"], lambda: shape[1.0], lambda: shape + [1], lambda: shape + 1):
        with pytest.raises(TypeError):
            wrong()


def test_equal() -> None:
    nan = float("nan")
    for dtype in (fw.float32, fw.float64, fw.int64, fw.bool, fw.int8):
        x = fw.arange(600).remainder(2).to(dtype)
        y = x.clone()
        assert fw.equal(x, y) and fw.equal(x.view(2, 300).t(), y.view(2, 300).t())
        y[599] = 1 - int(y[599])
        assert not fw.equal(x, y) and not fw.equal(x, y[:5]) and fw.equal(x[:0], y[:0])
    assert fw.equal(fw.tensor([0.0]), fw.tensor([-0.0])) and not fw.equal(fw.tensor([nan]), fw.tensor([nan]))
    assert fw.equal(fw.tensor([1]), fw.tensor([1.0]))


def test_the_road_says_what_was_wrong_and_takes_what_is_unusual() -> None:
    with pytest.raises(fw.errors.ShapeError, match="matmul") as caught:
        fw.ones(3, 4) @ fw.ones(3, 4)
    assert "while running matmul" in "".join(caught.value.__notes__)
    with pytest.raises(fw.errors.ShapeError, match="broadcast"):
        fw.ones(3) + fw.ones(4)
    with pytest.raises(fw.errors.DTypeError):
        fw.ones(3) & fw.ones(3)
    x = fw.arange(6.0).reshape(2, 3).t()
    assert x.sort(0)[0].is_contiguous() and x.softmax(0).shape == (3, 2) and x.max(1)[1].tolist() == [1, 1, 1]
    assert fw.where(x > 2, x, 0.0).tolist() == [[0, 3], [0, 4], [0, 5]]
    assert (fw.ones(2, dtype=fw.float16) + 1).dtype is fw.float16
    assert (fw.ones(2, dtype=fw.int64) + 1.5).dtype is fw.float32


def test_draws_are_those_of_the_long_way() -> None:
    for draw in (lambda g: fw.rand(3, 4, generator=g), lambda g: fw.randn(7, generator=g),
                 lambda g: fw.zeros(5).normal_(2.0, 3.0, generator=g),
                 lambda g: fw.zeros(5, dtype=fw.float64).uniform_(generator=g),
                 lambda g: fw.empty(3, 3).t().normal_(generator=g)):
        generator = fw.Generator().manual_seed(5)
        fw.manual_seed(5)
        for _ in range(2):
            assert fw.equal(draw(None), draw(generator))
        fw.randperm(3)
        fw.randperm(3, generator=generator)
        assert fw.equal(draw(None), draw(generator))
    assert fw.zeros(0).normal_().shape == (0,)


@pytest.mark.parametrize("dtype", [fw.float32, fw.float64], ids=str)
def test_coins_of_many_chances_are_those_of_the_long_way(dtype: fw.dtype) -> None:
    p = fw.rand(5, 7, dtype=dtype)
    turned = fw.zeros(7, 5, dtype=dtype).t()
    results = []
    for draw in (lambda: fw.zeros_like(p).bernoulli_(p), lambda: turned.bernoulli_(p),
                 lambda: fw.bernoulli(p),
                 lambda: p.clone().bernoulli_(p), lambda: (q := p.clone()).bernoulli_(q)):
        fw.manual_seed(5)
        results.append((draw(), fw.rand(2)))
    for coins, behind in results:
        assert fw.equal(coins, results[0][0]) and fw.equal(behind, results[0][1])
    fw.manual_seed(5)
    for wrong in (p + 1, p - 1, p * float("nan")):
        with pytest.raises(ValueError, match="probabilities must be in"):
            fw.zeros_like(p).bernoulli_(wrong)
    with pytest.raises(ValueError, match="does not broadcast"):
        fw.zeros_like(p).bernoulli_(p[:, :3])
    assert fw.equal(fw.zeros_like(p).bernoulli_(p), results[0][0])  # nothing was drawn before


def test_numbers_are_copied_as_they_convert() -> None:
    for dtype in (fw.int64, fw.int8, fw.uint8, fw.bool, fw.float32, fw.float16, fw.bfloat16, fw.complex64):
        for number in (2, 0.5, -1.5 if dtype is not fw.uint8 else 1.5, True):
            x = fw.zeros(2, dtype=dtype)
            version = x._version
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert x.copy_(number) is x and x._version == version + 1
            assert fw.equal(x, fw.full((2,), number).to(dtype)), (dtype, number)
    leaf = fw.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="copy_"):
        leaf.copy_(2)
    y = leaf * 2
    y.copy_(3.0)
    (y.sum() + 0 * leaf.sum()).backward()
    assert leaf.grad.tolist() == [0, 0] and y.tolist() == [3, 3]


def test_the_only_element() -> None:
    for dtype in (fw.float32, fw.float64, fw.float16, fw.bfloat16, fw.int8, fw.int64, fw.bool, fw.complex64):
        for x in (fw.ones((), dtype=dtype), fw.ones(1, 1, dtype=dtype), fw.ones(4, dtype=dtype)[2]):
            found = x.item()
            assert found == 1 and type(found) is type(fw.tensor(x.tolist()).reshape(-1).tolist()[0])
    assert fw.nn.Parameter(fw.ones(1)).item() == 1 and fw.Tensor.item(fw.ones(())) == 1
    for wrong in (fw.ones(2), fw.ones(0)):
        with pytest.raises(ValueError, match="wanted a tensor of one element"):
            wrong.item()
    for call in (lambda: fw.ones(()).item(0), lambda: fw.Tensor.item(), lambda: fw.ones(()).item(x=1)):
        with pytest.raises(TypeError, match="item"):
            call()


def test_plans_of_numbers_take_what_is_plain_and_ask_for_all_else() -> None:
    x, low = fw.tensor([-1.0, 0.5, 3.0]), fw.tensor([0.0, 1.0, 2.0])
    for args, keywords in (((0, 1), {}), ((0.0, 1), {}), ((0,), {"max": 1}), ((), {"min": 0, "max": 1})):
        y = x.clone()
        assert y.clamp_(*args, **keywords) is y and y.tolist() == [0, 0.5, 1]
    assert x.clone().clamp_(low, 2.0).tolist() == [0, 1, 2]
    assert x.clone().clamp_(np.float64(0), np.float32(1)).tolist() == [0, 0.5, 1]
    assert x.clone().clamp_(True, 2).tolist() == [1, 1, 2]
    for wrong in ((0, 1, 2), ("a", 1), (), ([0], 1)):
        with pytest.raises(TypeError if wrong else ValueError, match="clamp"):
            x.clone().clamp_(*wrong)
    assert x.clone().lerp_(low, 1).tolist() == low.tolist()
    assert x.double().lerp_(low.double(), 0.5).tolist() == ((x + low) / 2).tolist()
    assert x.clone().lerp_(low.double(), 0.5).tolist() == ((x + low) / 2).tolist()
    for wrong in ((low,), (low, 0.5, 1), (low, "a")):
        with pytest.raises(TypeError, match="lerp|must be|missing|argument"):
            x.clone().lerp_(*wrong)
    if _native.module is not None:
        pick, plan = random.Random(1), _native.module.plan_with_numbers
        given = [x, low, low.double(), x.long(), fw.nn.Parameter(low), 1, 0.5, True, None, "a", 2**70, [1.0]]
        for inputs, names in ((1, ()), (1, ("low",)), (2, ("w",)), (3, ("a", "b"))):
            answer = plan("record", inputs, names, lambda *args: "asked")
            for _ in range(200):
                found = answer(*pick.choices(given, k=pick.randrange(5)))
                assert found == "asked" or found[0] == "record" and len(found[1]) == inputs
        with pytest.raises(ValueError, match="inputs"):
            plan("record", 0, (), print)
        both = plan("record", 1, ("low",), lambda *args: "asked", of_tensors="other")
        assert both(x, low)[0] == "other" and both(x.long(), low.long())[0] == "other"
        assert both(x.long(), 3)[::2] == ("record", {"low": 3})
        for asked in ((x.long(), 0.5), (x.long(), 2**63), (x.int(), 3), (x, low.double()), (x.bool(), True)):
            assert both(*asked) == "asked"


def test_limits_in_place_of_whole_numbers() -> None:
    x, low, high = fw.tensor([-5, 0, 7]), fw.tensor([-1, 1, 1]), fw.tensor([3, 3, 3])
    for dtype in (fw.int64, fw.int32, fw.uint8, fw.float32):
        a, b, c = (t.abs().to(dtype) for t in (x, low, high))
        for made in (a.clone().clamp_(b, c), a.clone().clamp_(1, 3)):
            assert made.dtype is dtype and made.tolist() == [3, 1, 3]
        assert a.clone().clamp_max_(c).tolist() == a.clamp_max(c).tolist() == [3, 0, 3]
        assert a.clone().clamp_min_(b).tolist() == a.clamp_min(b).tolist() == [5, 1, 7]
        assert a.clone().clamp_min_(2).tolist() == [5, 2, 7]
    y = x.clone()
    with pytest.raises(TypeError, match="fit"):
        y.clamp_(0.5, 2)
    assert y.tolist() == x.tolist() and y._version == 0


def test_truth_in_place_is_that_of_the_function() -> None:
    x = fw.tensor([[0.0, 2.0, float("nan")], [1.0, 0.0, 3.0]])
    y = fw.tensor([[0.0, 1.0, 1.0], [2.0, 0.0, 3.0]])
    for name in ("lt", "le", "gt", "ge", "eq", "ne", "logical_and", "logical_or", "logical_xor",
                 "logical_not"):
        others = () if name == "logical_not" else (y,)
        for dtype in (fw.float32, fw.float64, fw.float16, fw.bfloat16, fw.int64, fw.uint8, fw.bool):
            for of in (lambda t: t.clone(), lambda t: t.t().contiguous().t(), lambda t: t.repeat(90, 40)):
                a, *b = (of(t.nan_to_num(4.0).to(dtype)) for t in (x, *others))
                wanted = getattr(a, name)(*b).to(dtype)
                made = getattr(a, name + "_")(*b)
                assert made is a and a._version == 1 and a.dtype is dtype
                assert a.tolist() == wanted.tolist(), (name, dtype)
    assert x.clone().lt_(y.double()).tolist() == x.lt(y.double()).float().tolist()
    assert x.clone().gt_(1).tolist() == x.gt(1).float().tolist()
    assert x.clone().lt_(other=y).tolist() == x.lt(y).float().tolist()
    with pytest.raises(ValueError, match="lt|shape"):
        x.clone().lt_(fw.ones(4, 2, 3))
    w = fw.ones(2, requires_grad=True)
    with pytest.raises(fw.errors.AutogradError, match="leaf"):
        w.lt_(2)
    a = w * 1
    assert a.lt_(2).tolist() == [1, 1] and not a.requires_grad


def test_whole_numbers_stay_as_they_are() -> None:
    x = fw.tensor([1, -2])
    for args in ((), (0.5,), (1, 2), (0.5, None, 3)):
        before = x._version
        assert x.nan_to_num_(*args) is x and x.tolist() == [1, -2] and x._version == before + 1
    with pytest.raises(TypeError, match="nan_to_num"):
        fw.tensor([1.0]).nan_to_num_("a")
    assert fw.tensor([1.5, float("nan")]).nan_to_num_(2).tolist() == [1.5, 2]
    assert x.fill_(-7.9).tolist() == [-7, -7] and x.fill_(True).tolist() == [1, 1]
    for wrong in (float("nan"), float("inf"), 1e300):
        with pytest.raises((OverflowError, ValueError)):
            x.fill_(wrong)
    assert x.tolist() == [1, 1]


def test_powers_of_whole_numbers() -> None:
    for dtype in (np.int64, np.int32, np.int16, np.uint8):
        a = np.array([[-7, 0, 1, 2], [3, 5, -1, 9]]).astype(dtype)
        b = np.array([[0, 0, 9, 70], [41, 1, 63, 8]]).astype(dtype)
        x, y = fw.from_numpy(a), fw.from_numpy(b)
        for found, wanted in ((x ** y, a ** b), (x.t() ** y.t(), a.T ** b.T), (x ** y[:1], a ** b[:1]),
                              (x ** 3, a ** dtype(3)), (x.clone().pow_(y), a ** b)):
            assert found.numpy().dtype == wanted.dtype and found.tolist() == wanted.tolist(), dtype
    large = np.arange(100_000) % 19 - 9
    assert (fw.from_numpy(large) ** 5).tolist() == (large ** 5).tolist()
    x = fw.tensor([2, 3])
    with pytest.raises(ValueError, match="negative integer"):
        x.pow_(fw.tensor([1, -1]))
    assert x.tolist() == [2, 3] and x._version == 0


def test_numbers_are_drawn_as_the_long_way_draws_them() -> None:
    calls = {"uniform_": ((), {}, (0.5, 2), {"low": 0.5, "high": 2}),
             "normal_": ((1, 3.0), {"mean": 1, "std": 3.0}),
             "exponential_": ((), {}, (2,), {"lambd": 2}), "cauchy_": ((1.0, 2), {"median": 1.0, "sigma": 2}),
             "log_normal_": ((), {}, (0, 1), {"mean": 0, "std": 1}), "geometric_": ((0.3,), {"p": 0.3}),
             "random_": ((), {}, (9,), {"low": 0, "high": 9}, (-3, 9), {"low": -3, "high": 9})}
    for name, ways in calls.items():
        for given, named in zip(ways[::2], ways[1::2]):
            for dtype in (fw.float32, fw.float64, fw.float16, fw.bfloat16, fw.int64):
                if dtype is fw.int64 and name not in ("geometric_", "random_"):
                    continue
                drawn = []
                own = {**named, "generator": fw.default_generator}
                for args, keywords in ((given, {}), ((), named), ((), own)):
                    fw.manual_seed(5)
                    x = fw.zeros(4, 9, dtype=dtype)
                    assert getattr(x, name)(*args, **keywords) is x and x._version == 1
                    fw.zeros(3).uniform_()
                    drawn.append((x.double().tolist(), fw.rand(1).item()))
                assert drawn[0] == drawn[1] == drawn[2], (name, dtype)
    x = fw.zeros(3)
    for call in (lambda: x.exponential_(1.0, 2.0), lambda: x.geometric_(), lambda: x.random_(1, 2, 3),
                 lambda: x.cauchy_(1, 2, 3), lambda: x.uniform_(0, low=1), lambda: x.normal_(sigma=1)):
        with pytest.raises(TypeError):
            call()
    for name, args in (("uniform_", ("a",)), ("normal_", (0, [1])), ("exponential_", ("a",)),
                       ("cauchy_", (None,)), ("log_normal_", (0, "a")), ("geometric_", ("a",))):
        with pytest.raises(TypeError, match=f"{name}: .* must be a number, got"):
            getattr(x, name)(*args)
    for wrong in (lambda: x.exponential_(-1.0), lambda: x.cauchy_(0, 0), lambda: x.log_normal_(0, 0),
                  lambda: x.geometric_(1.0), lambda: x.geometric_(0), lambda: x.random_(3, 3)):
        with pytest.raises(ValueError):
            wrong()
    assert x.tolist() == [0, 0, 0] and x._version == 0


def test_copies_of_shape_and_dtype() -> None:
    for x in (fw.ones(2, 3), fw.ones(2, 3, dtype=fw.int8), fw.ones(2, 3).t(),
              fw.ones(2, 3, dtype=fw.bfloat16)):
        for made, number in ((fw.zeros_like(x), 0), (fw.ones_like(x), 1)):
            assert made.shape == x.shape and made.dtype is x.dtype and made.stride() == x.stride()
            assert made.float().tolist() == fw.full(x.shape, float(number)).tolist()
    assert fw.ones_like(fw.ones(2), requires_grad=True).requires_grad
    assert fw.arange(3).tolist() == [0, 1, 2] and fw.arange(2, 9, 3).tolist() == [2, 5, 8]
    assert fw.arange(3.0).dtype is fw.float32 and fw.arange(5, 0, -2).tolist() == [5, 3, 1]
    with pytest.raises(ValueError):
        fw.arange(3, 0)


@pytest.mark.skipif(_native.module is None, reason="no native kernels")
def test_it_is_the_short_way() -> None:
    from framework.ops.record.aliases import view_maker
    from framework.ops.shape.view import reshape_op
    assert view_maker("shaped")(fw.ones(4), (2, 2), reshape_op).shape == (2, 2)
    x = fw.ones(4)
    assert into.native_into("fill")(x, 2.0, "fill_") is x


@pytest.mark.skipif(_native.module is None, reason="no native kernels")
def test_arguments_of_any_kind_are_declined_or_refused() -> None:
    from framework.ops.shape.view import reshape_op
    pick = random.Random(0)
    numbers = [0, 1, -1, 2, 3, -3, 5, 2**31, 2**62, -(2**63), 2**63, 2**70]
    odd = [None, ..., True, 1.5, "x", b"", (), [], {}, slice(None), slice(1, -1), slice(0, 2**70),
           slice("a"), slice(None, None, -1), slice(None, None, 2**62), object(), fw.float32, np.ones(2),
           np.int64(1)]
    tensors = [fw.ones(2, 3), fw.ones(()), fw.ones(0, 3), fw.ones(3, 2).t(),
               fw.ones(1).expand(2, 2), fw.ones(4) * 2,
               fw.ones(3, requires_grad=True), fw.ones((1,) * 40), fw.ones(2, dtype=fw.bfloat16), None, 3]
    counts = {"shaped": 1, "unsqueezed": 1, "squeezed": 1, "flattened": 2, "permuted": 1, "transposed": 2,
              "reversed": 1, "expanded": 1, "sliced": 1, "selected": 2, "narrowed": 3, "pieces": 2,
              "chunks": 2, "diagonal": 3, "windows": 3}

    def any_argument(depth: int = 0) -> object:
        kind = pick.random()
        if kind < 0.5:
            return pick.choice(numbers)
        if kind < 0.7 and not depth:
            return tuple(any_argument(1) for _ in range(pick.choice([0, 1, 2, 3, 70])))
        return pick.choice(odd + tensors)
    for name, count in counts.items():
        view = getattr(_native.module, f"view_{name}")
        for _ in range(150):
            try:
                out = view(pick.choice(tensors), *[any_argument() for _ in range(count)], reshape_op)
            except (TypeError, ValueError, OverflowError, MemoryError):
                continue
            for y in out if isinstance(out, tuple) else (out,):
                assert y is NotImplemented or np.isfinite(y.detach().float().sum().item())
        with pytest.raises(TypeError):
            view()
    for name, count in {"copy": 2, "fill": 2, "put": 2, "call": 5}.items():
        for _ in range(150):
            out = into.native_into(name)(*[any_argument() for _ in range(count)], "name")
            assert out is NotImplemented or isinstance(out, fw.Tensor)


def test_keys_of_many_positions_are_read_quickly_and_as_the_others() -> None:
    """A key of tensors of one shape has its own way; lists of the same positions have not."""
    x = fw.arange(24.0).view(2, 3, 4)
    rows, columns = fw.tensor([[0, 1], [-1, 0]]), fw.tensor([[2, 0], [-3, 1]])
    for key in ((rows, columns), (rows, columns, rows), (rows[0], columns[0]), (rows[:0], columns[:0])):
        listed = tuple(k.tolist() if k.numel() else np.zeros(k.shape, int) for k in key)
        want = x.numpy()[tuple(k.numpy() for k in key)]
        assert np.array_equal(x[key].numpy(), want) and np.array_equal(x[listed].numpy(), want)
        by_tensors, by_lists = x.clone(), x.clone()
        by_tensors[key], by_lists[listed] = -1.0, -1.0
        changed = len(set(want.reshape(-1).tolist()))
        assert fw.equal(by_tensors, by_lists) and int((by_tensors == -1).sum()) == changed
    y = x.clone()
    for wrong in ((rows, columns + 1), (rows[0], columns[0], fw.tensor([0, 4]))):
        with pytest.raises(IndexError, match="out of range for dimension"):
            y[wrong] = 0.0
    with pytest.raises(IndexError, match="4 indices"):
        x[rows, rows, rows, rows]
    assert fw.equal(y, x)


def test_cat_of_like_tensors_and_of_others() -> None:
    a, b = fw.ones(2, 3), fw.zeros(1, 3)
    assert fw.cat((a, b)).shape == (3, 3) and fw.cat([a, b], -2).shape == (3, 3)
    assert fw.cat([fw.ones(0), a]).shape == (2, 3) and fw.cat([fw.ones(0)]).shape == (0,)
    assert fw.cat([a, b.double()]).dtype is fw.float64 and fw.cat(iter([a, b])).shape == (3, 3)
    misfit = fw.errors.ShapeError
    for wrong, error in (([a, fw.ones(2, 2)], misfit), ([fw.ones(())] * 2, misfit), ([a, fw.ones(2)], misfit),
                         ([a, 3], TypeError), ([], ValueError)):
        with pytest.raises(error, match="cat"):
            fw.cat(wrong)
    with pytest.raises(IndexError, match="cat"):
        fw.cat([a, b], 2)


def test_places_of_what_is_not_zero_are_those_of_the_formula() -> None:
    r = np.random.default_rng(0)
    for shape in ((), (0,), (5,), (3, 0), (3, 4), (100, 60), (2, 3, 4), (5000,), (4097, 1)):
        for dtype in (np.float32, np.int64, np.bool_, np.complex64):
            x = np.array(r.standard_normal(shape) > 0, dtype)
            if dtype is np.float32 and x.ndim:
                x[..., :1] = np.nan
            for y in (x, x.T, x[::2] if x.ndim else x):
                got = fw.nonzero(fw.from_numpy(y)).numpy()
                assert got.flags.c_contiguous and np.array_equal(got, np.argwhere(y)), (shape, dtype)


WHOLE = {
    "exp": lambda x: x.exp(), "sin": lambda x: fw.sin(x), "digamma": lambda x: x.digamma(),
    "divided": lambda x: x / x,
    "by a number": lambda x: x / 3, "a number by it": lambda x: 3 / x, "and a float": lambda x: x + 0.1,
    "a float less it": lambda x: 0.1 - x, "compared": lambda x: x < 2.5,
    "chosen": lambda x: fw.where(x > 2, x, 0.5),
    "xlogy": lambda x: x.xlogy(x), "broadcast": lambda x: x[:1] / x.reshape(-1, 1),
    "scalar": lambda x: x[0].sqrt(),
    "float and whole": lambda x: fw.lerp(x.float(), x.float() + 1, 2),
}


@pytest.mark.parametrize("default", [fw.float32, fw.float64, fw.float16])
@pytest.mark.parametrize("dtype", [fw.int64, fw.uint8, fw.bool])
@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_become_floats_as_the_long_way(name: str, dtype: fw.dtype, default: fw.dtype) -> None:
    fw.set_default_dtype(default)
    try:
        x = fw.tensor([1, 2, 3, 0]).to(dtype)
        with np.errstate(all="ignore"):
            want, got = _watched(WHOLE[name], x), WHOLE[name](x)
    finally:
        fw.set_default_dtype(fw.float32)
    assert got.dtype is want.dtype and got.shape == want.shape
    assert np.array_equal(got._array, want._array, equal_nan=got.dtype.is_floating_point)
    assert x.dtype is dtype and not got.requires_grad


MOVES = {
    "cat": lambda x: fw.cat([x, x[:1]]), "stack": lambda x: fw.stack([x, x], -1),
    "flip": lambda x: x.flip(0, 1),
    "roll": lambda x: x.roll(1, 0), "tril": lambda x: x.tril(), "triu": lambda x: x.triu(1),
    "rows": lambda x: x[fw.tensor([2, 0, 2])], "mask": lambda x: x[x > 0], "gather": lambda x: x.gather(
        1, fw.tensor([[0, 2, 2], [1, 1, 0]])),
    "scatter": lambda x: x.scatter(0, fw.tensor([[0, 2], [1, 0]]), x.T),
    "put": lambda x: fw.index_put(x, (fw.tensor([0, 2]),), x[:2] * 2), "amax": lambda x: x.amax(0),
    "softmax": lambda x: x.softmax(-1), "cumsum": lambda x: x.cumsum(1), "sorted": lambda x: x.sort(1)[0],
    "index_add": lambda x: x.index_add(0, fw.tensor([1, 1]), x[:2]),
    "fill": lambda x: x.masked_fill(x > 1, 0.5),
}


@pytest.mark.skipif(_native.module is None, reason="NumPy computes float16 in steps of its own")
@pytest.mark.parametrize("dtype", [fw.float16, fw.bfloat16])
@pytest.mark.parametrize("name", MOVES)
def test_narrow_elements_and_gradients_are_those_of_float32_rounded(name: str, dtype: fw.dtype) -> None:
    numbers = fw.tensor([[0.5, -2.0, 3.25], [1.0, 7.0, -0.125], [2.5, -4.0, 6.0]])
    x, wide = numbers.to(dtype).requires_grad_(), numbers.clone().requires_grad_()
    got, want = MOVES[name](x), MOVES[name](wide)
    assert got.dtype is dtype and got.tolist() == want.detach().to(dtype).tolist()
    got.backward(fw.ones_like(got) * 1.5)
    want.backward(fw.ones_like(want) * 1.5)
    error = (x.grad.float() - wide.grad).abs().max().item()
    assert x.grad.dtype is dtype and error <= (0.0 if name != "softmax" else 0.01)


KEYS = {
    "along": (slice(None), fw.tensor([2, 0, -1])), "first of all": (fw.tensor([1, 0]), slice(None)),
    "along the last": (slice(None), slice(None), fw.tensor([[1], [0]])), "list": [1, 0, 1],
    "list of none": [],
    "tensors": (fw.tensor([1, 0]), fw.tensor([2, 2])), "not there": (slice(None), fw.tensor([0, 3])),
    "list not there": [0, -3], "too many": (slice(None),) * 3 + (fw.tensor([0]),),
    "part": (slice(1), fw.tensor([0])), "mask": fw.arange(24).reshape(2, 3, 4) % 5 < 2,
    "two along": (slice(None), fw.tensor([0, 1]), fw.tensor([1, 2])), "of a mask": [True, False],
    "rows": fw.tensor([1, 1]), "no rows": fw.tensor([], dtype=fw.int64),
}
VALUES = {
    "float": 2.5, "int": -100, "large": 1 << 70, "negative": -(1 << 63), "bool": True, "complex": 1j,
    "number": fw.tensor(1.5), "whole": fw.tensor(7), "wide": fw.tensor(0.1, dtype=fw.float64),
    "row": fw.arange(4.0), "recorded": fw.tensor(3.0, requires_grad=True), "wrong": fw.zeros(5, 5),
}


def _written(dtype: fw.dtype, turned: bool, key, value):
    """What is there after a write, how often it was counted, and what went wrong."""
    base = (fw.arange(24) % 7).to(dtype).reshape(4, 3, 2).permute(2, 1, 0)
    x = base if turned else base.contiguous()
    try:
        x[key] = value
        wrong = None
    except Exception as error:
        wrong = type(error), str(error).split(";")[0]
    leaf = value if isinstance(value, fw.Tensor) and value.requires_grad else None
    grad = fw.autograd.grad(x.sum(), leaf)[0].item() if leaf is not None and x.requires_grad else None
    return x.detach().numpy().tolist(), x._version, wrong, grad


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("key", KEYS)
def test_elements_are_written_as_the_long_way(key: str, value: str, turned: bool) -> None:
    for dtype in (fw.float32, fw.int64, fw.int32, fw.bool):
        with warnings.catch_warnings(action="ignore"):
            got = _written(dtype, turned, KEYS[key], VALUES[value])
            want = _watched(_written, dtype, turned, KEYS[key], VALUES[value])
        assert str(got) == str(want), dtype


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("key", KEYS)
def test_elements_are_read_as_the_long_way(key: str, turned: bool) -> None:
    base = fw.arange(24.0).reshape(4, 3, 2).permute(2, 1, 0).requires_grad_()
    x = base if turned else base.contiguous()

    def read():
        try:
            y = x[KEYS[key]]
        except IndexError as error:
            return str(error)
        grad, = fw.autograd.grad((y * y).sum(), x)
        return y.shape, y.tolist(), grad.tolist()
    assert read() == _watched(read)


def test_a_diagonal_is_filled_through_its_view() -> None:
    for shape in ((3, 3), (2, 5), (5, 2), (0, 3), (1, 1)):
        for dtype in (fw.float32, fw.int64, fw.bool, fw.complex64):
            x = fw.zeros(shape, dtype=dtype)
            want = np.zeros(shape, dtype.numpy)
            np.fill_diagonal(want, 1)
            assert x.fill_diagonal_(1) is x and np.array_equal(x.numpy(), want) and x._version == 1
    x = fw.ones(3, 2, requires_grad=True)
    with pytest.raises(fw.errors.AutogradError, match="fill_diagonal_: a leaf"):
        x.fill_diagonal_(0)
    assert fw.autograd.grad((x * 2).fill_diagonal_(0).sum(), x)[0].tolist() == [[0, 2], [2, 0], [2, 2]]


UNRECORDED = {
    "add_": lambda x, y: x.add_(y, alpha=-0.5), "mul_": lambda x, y: x.mul_(y),
    "copy_": lambda x, y: x.copy_(y), "lerp_": lambda x, y: x.lerp_(y, 0.25), "zero_": lambda x, y: x.zero_(),
    "fill_": lambda x, y: x.fill_(2.0), "uniform_": lambda x, y: x.uniform_(),
    "addcmul_": lambda x, y: x.addcmul_(y, y, value=0.5), "clamp_": lambda x, y: x.clamp_(0.2, 0.6),
    "itself": lambda x, y: x.mul_(x), "out": lambda x, y: fw.mul(x, y, out=x),
    "masked_fill_": lambda x, y: x.masked_fill_(y > 0.5, 1.0), "of a mask": lambda x, y: x.mul_(y > 0.5),
    "set": lambda x, y: x.__setitem__(slice(None), y), "a part": lambda x, y: x[0].add_(y[0]),
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("kind", ["leaf", "result", "view"])
@pytest.mark.parametrize("name", UNRECORDED)
def test_where_no_graph_is_made_tensors_of_one_are_written_to_as_the_long_way(
        name: str, kind: str, recorded: bool) -> None:
    """``recorded``: the operand requires a gradient, too."""
    def run():
        fw.manual_seed(1)
        leaf = fw.rand(3, 4).requires_grad_()
        x = {"leaf": lambda: leaf, "result": lambda: leaf * 2, "view": lambda: (leaf * 2)[1:]}[kind]()
        y = fw.rand(x.shape).requires_grad_(recorded)
        node, kept = x._node, (x * x).sum()
        with fw.no_grad():
            UNRECORDED[name](x, y)
        assert x._node is node and x.requires_grad and y._version == 0
        with pytest.raises(fw.errors.AutogradError, match="changed in place"):
            kept.backward()
        fw.manual_seed(1)
        return x.tolist(), x._version, fw.autograd.grad((x * 3).sum(), leaf)[0].tolist()
    assert run() == _watched(run)


@pytest.mark.parametrize("name", UNRECORDED)
def test_a_leaf_is_not_written_to_where_a_graph_is_made(name: str) -> None:
    x, y = fw.rand(3, 4).requires_grad_(), fw.rand(3, 4)
    before = x.tolist()
    with pytest.raises((fw.errors.AutogradError, RuntimeError), match="leaf|out="):
        UNRECORDED[name](x, y)
    assert x.tolist() == before and x._version == 0
