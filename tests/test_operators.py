"""Operators between tensors and things that are none: each side gets its turn, as PyTorch and Python say."""

import operator

import numpy as np
import pytest

import framework as fw
from framework.ops.pointwise.arithmetic import remainder

ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor",
              "lshift", "rshift"]
COMPARISONS = ["lt", "le", "gt", "ge"]
FUNCTIONS = {name: getattr(operator, {"and": "and_", "or": "or_"}.get(name, name))
             for name in (*ARITHMETIC, *COMPARISONS)}
SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


class Stranger:
    """Answers each operator with its name, on either side."""


for _name in ARITHMETIC:
    setattr(Stranger, f"__{_name}__", lambda self, other, name=_name: ("left", name, other))
    setattr(Stranger, f"__r{_name}__", lambda self, other, name=_name: ("right", name, other))
for _name in COMPARISONS:
    setattr(Stranger, f"__{_name}__", lambda self, other, name=_name: ("left", name, other))


class Deaf:
    """Knows no operators."""

    def __repr__(self):
        return "Deaf()"


@pytest.fixture(params=[fw.tensor([1, 2]), fw.tensor(2), fw.tensor([1.5], requires_grad=True)], ids=str)
def x(request):
    return request.param


@pytest.mark.parametrize("name", ARITHMETIC)
def test_strangers_get_their_turn(name, x):
    function = FUNCTIONS[name]
    side, called, other = function(x, Stranger())
    assert (side, called) == ("right", name) and other is x
    assert function(Stranger(), x)[:2] == ("left", name)
    if name != "matmul":
        y = x.detach().clone()
        in_place = getattr(operator, f"i{name}")
        assert in_place(y, Stranger())[:2] == ("right", name)  # nothing was written
        assert fw.equal(y, x)


@pytest.mark.parametrize("name", COMPARISONS)
def test_strangers_are_asked_to_compare(name, x):
    assert FUNCTIONS[name](x, Stranger())[:2] == ("left", SWAPPED[name])


@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS])
@pytest.mark.parametrize("thing", [None, "a", {"a": 1}, {1}, Deaf(), slice(1)], ids=str)
def test_nobody_knows_what_it_means(name, thing, x):
    function = FUNCTIONS[name]
    if name == "mul" and isinstance(thing, str):
        return  # Python repeats it
    with pytest.raises(TypeError):
        function(x, thing)
    if not (name == "mod" and isinstance(thing, str)):  # the string's own operator
        with pytest.raises(TypeError):
            function(thing, x)


def test_message_names_the_op_where_python_has_nothing_to_try():
    with pytest.raises(TypeError, match="sub: argument 'other' must be a Tensor or a number, got list"):
        fw.ones(2) - [1.0, 2.0]
    with pytest.raises(TypeError, match="lt: .*NoneType"):
        fw.ones(2) < None  # noqa: B015


@pytest.mark.parametrize("thing", [None, "a", [1, 2], (1, 2), {"a": 1}, {1}, Deaf(), slice(1), int], ids=str)
def test_equal_by_identity(thing, x):
    assert (x == thing) is False and (thing == x) is False
    assert (x != thing) is True and (thing != x) is True
    assert thing not in [x] and x not in [thing]
    with pytest.raises(TypeError, match="eq: argument 'other'"):
        fw.eq(x, thing)
    with pytest.raises(TypeError, match="ne: argument 'other'"):
        fw.ne(x, thing)


def test_containers_that_hold_tensors_compare():
    x, y = fw.ones(2), fw.zeros(2)
    assert {"x": x, "n": None} == {"x": x, "n": None}
    assert {"x": x} != {"x": None} and (x, "a") != ("a", x) and [x, 1] != [x]
    assert [None, x].index(x) == 1 and [x, None].count(None) == 1
    assert {x: 1}[x] == 1 and y not in {x: 1}


def test_equality_of_a_strangers_choosing():
    class Any:
        def __eq__(self, other):
            return "equal"

        def __ne__(self, other):
            return "unequal"
        __hash__ = None

    assert (fw.ones(2) == Any()) == "equal" and (fw.ones(2) != Any()) == "unequal"


def test_lists_are_extended_and_repeated():
    rows = [0]
    rows += fw.tensor([1, 2])
    assert [int(r) for r in rows] == [0, 1, 2]
    assert [1, 2] * fw.tensor(2) == fw.tensor(2) * [1, 2] == [1, 2, 1, 2]


@pytest.mark.parametrize("name", [n for n in ARITHMETIC if n != "matmul"])
def test_numbers_on_the_left(name):
    x, function = np.array([1, 2, 3]), FUNCTIONS[name]
    y = function(7, fw.tensor(x))
    assert isinstance(y, fw.Tensor)
    np.testing.assert_allclose(y.numpy(), function(7, x))


def test_arrays_on_either_side():
    x = np.array([1.0, 2.0])
    for y in (fw.tensor(x) - x[::-1], x - fw.tensor(x[::-1].copy())):
        assert isinstance(y, fw.Tensor) and y.tolist() == [-1.0, 1.0]
    y = fw.tensor([4, 8])
    y >>= 1
    y <<= fw.tensor([0, 2])
    assert y.tolist() == [2, 16]


@pytest.mark.parametrize("name", ["floordiv", "mod"])
def test_whole_numbers_are_not_divided_by_zero(name):
    divide, x = FUNCTIONS[name], fw.tensor([1, 2])
    for other in (0, fw.tensor(0), fw.tensor([1, 0])):
        with pytest.raises(ZeroDivisionError, match="divided by 0") as caught:
            divide(x, other)
        assert isinstance(caught.value, RuntimeError)
    with pytest.raises(ZeroDivisionError):
        getattr(operator, f"i{name}")(x, 0)
    with pytest.raises(ZeroDivisionError):
        divide(7, fw.tensor([0]))
    assert x.tolist() == [1, 2]
    assert not divide(x.double(), 0).isfinite().any() and divide(x, 2.0).isfinite().all()


def test_zero_is_refused_after_two_first_calls():
    """Two threads may both find that the kernel is not there yet."""
    record, x, y = remainder.op, np.array([7]), np.array([3])
    assert record._first_cpu(x, y).tolist() == record._first_cpu(x, y).tolist() == [1]
    assert fw.remainder(fw.tensor([7]), fw.tensor([3])).tolist() == [1]
    with pytest.raises(ZeroDivisionError):
        fw.remainder(fw.tensor([7]), fw.tensor([0]))


def test_refused_as_in_pytorch():
    F, x = fw.nn.functional, fw.arange(6.0)
    for refused in (lambda: x.reshape(-2, 2), lambda: x.view(-3, -1), lambda: fw.gather(
            x, 0, fw.tensor([0]), out=fw.ones(1, dtype=fw.float64)), lambda: fw.aminmax(x, out=(
                fw.ones((), dtype=fw.float64), fw.ones((), dtype=fw.float64))),
            lambda: fw.multinomial(x, 1, out=fw.ones(1)), lambda: fw.cat([x[:2], x[2:4]], out=x[1:5]),
            lambda: fw.gradient(x.reshape(2, 3), dim=(0, 0)),
            lambda: F.triplet_margin_loss(x[None], x[None], x[None], margin=-1.0)):
        with pytest.raises((RuntimeError, ValueError)):
            refused()
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    assert F.kl_div(fw.tensor([1.0]), fw.tensor([-1.0])).isnan()
