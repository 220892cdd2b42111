"""Names of jit, compiler, library and __config__ that libraries look for."""

import typing

import pytest

import framework as fw


def test_compiler_names():
    f = lambda x: x
    c = fw.compiler
    assert not c.is_compiling() and not c.is_dynamo_compiling() and not c.is_exporting()
    asks = lambda: c.is_compiling()
    assert fw.compile(asks)() and not fw.compile(c.disable(asks))() and not fw.compile(c.disable()(asks))()
    assert c.allow_in_graph(f) is f and c.assume_constant_result(f) is f
    assert c.substitute_in_graph(len)(f) is f
    assert c.list_backends() == ["framework"] and c.reset() is None and c.cudagraph_mark_step_begin() is None
    with c.set_stance("force_eager"):
        assert f(1) == 1
    with pytest.raises(ValueError, match="stance"), c.set_stance("fast"):
        pass


def test_jit_names():
    jit = fw.jit

    @jit.ignore
    def plain(x):
        return x + 1

    @jit.ignore(drop=True)
    def dropped(x):
        return x + 2

    @jit.unused
    @jit.export
    @jit.script_if_tracing
    @jit.interface
    def many(x):
        return x + 3

    assert (plain(1), dropped(1), many(1)) == (2, 3, 4)
    assert not jit.is_scripting() and not jit.is_tracing()
    assert jit.script(plain)(1) == 2 and jit.script(int) is int
    layer = fw.nn.Linear(1, 1)
    assert jit.script(layer) is layer and layer(fw.zeros(1, 1)).shape == (1, 1)
    assert jit.isinstance({"a": [1]}, typing.Dict[str, typing.List[int]])  # noqa: UP006
    assert not jit.isinstance((1, "a"), typing.Tuple[int, int])  # noqa: UP006
    assert jit.isinstance(None, typing.Optional[int]) and jit.isinstance(1, int)  # noqa: UP045
    assert jit.wait(jit.fork(pow, 2, 3)) == 8 and jit.annotate(int, 3) == 3
    assert jit.Attribute(3, int).value == 3
    with jit.optimized_execution(False):
        assert plain(1) == 2


def test_configuration():
    assert fw.__version__ in fw.__config__.show() or "numpy" in fw.__config__.show().lower()
    assert fw.__config__.parallel_info() == f"threads: {fw.get_num_threads()}"


def test_custom_operators():
    @fw.library.custom_op("tests::cube", mutates_args=(), device_types="cpu")
    def cube(x: fw.Tensor, scale: float = 1.0) -> fw.Tensor:
        return x ** 3 * scale

    x = fw.tensor([2.0], requires_grad=True)
    assert cube(x.detach()).item() == 8 and cube(x.detach(), scale=2.0).item() == 16

    def keep(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.scale = inputs[1] if len(inputs) > 1 else 1.0

    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * 3 * y ** 2 * ctx.scale, None

    fw.library.register_autograd("tests::cube", backward, setup_context=keep)
    cube(x, 2.0).sum().backward()
    assert x.grad.tolist() == [24]
    assert fw.library.get_kernel(cube, "cpu")(x.detach()).item() == 8
    with pytest.raises(NotImplementedError, match="kernel"):
        fw.library.get_kernel(cube, "cuda")
    fw.library.register_fake("tests::cube", lambda x, scale=1.0: fw.empty_like(x))
    fw.library.register_kernel(cube, "cuda", lambda x, scale=1.0: x)
    assert fw.library.get_kernel(cube, "cuda")(1) == 1
    with pytest.raises(ValueError, match="space::name"):
        fw.library.custom_op("cube", lambda x: x, mutates_args=())
    with pytest.raises(ValueError, match="space::name"):
        fw.library.register_fake("none", lambda x: x)


def test_a_rule_before_its_operator():
    fw.library.register_fake("tests::later", lambda x: fw.empty(5, device="meta"))
    assert "tests::later" not in fw.library.operators()
    later = fw.library.custom_op("tests::later", lambda x: x + 1, mutates_args=())
    assert fw.library.operators()["tests::later"] is later and later(fw.ones(1)).item() == 2
    assert later(fw.ones(1, device="meta")).shape == (5,)
    again = fw.library.custom_op("tests::later", lambda x: x + 2, mutates_args=())
    assert again is not later and again(fw.ones(1)).item() == 3


def test_checks_of_libraries():
    fw._assert(True, "no")
    fw._check(True)
    with pytest.raises(AssertionError, match="sizes"):
        fw._assert(fw.tensor(False), "sizes")
    for check, error in ((fw._check, RuntimeError), (fw._check_value, ValueError),
                         (fw._check_type, TypeError), (fw._check_index, IndexError),
                         (fw._check_not_implemented, NotImplementedError)):
        check(True, lambda: 1 / 0)
        with pytest.raises(error, match="so"):
            check(False, lambda: "so")
        with pytest.raises(TypeError, match="bool"):
            check(fw.tensor(True))
    fw._check_is_size(0)
    with pytest.raises(RuntimeError):
        fw._check_is_size(-1)


def test_marks_of_quantizable_models():
    floats, x = fw.nn.quantized.FloatFunctional(), fw.tensor([-3.0, 2.0])
    stubs = fw.nn.Sequential(fw.ao.quantization.QuantStub(), fw.ao.quantization.DeQuantStub("config"))
    assert stubs(x) is x and stubs[1].qconfig == "config" and not hasattr(stubs[0], "qconfig")
    assert floats.add(x, x).tolist() == [-6, 4] and floats.mul_scalar(x, 2).tolist() == [-6, 4]
    assert floats.add_relu(x, x).tolist() == [0, 4] and floats.matmul(x, x).item() == 13
    assert floats.cat([x, x]).shape == (4,)
    with pytest.raises(RuntimeError, match="methods"):
        floats(x)
