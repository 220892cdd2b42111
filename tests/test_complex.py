"""Gradients of complex tensors: their convention, where real and complex meet, what has none."""

import numpy as np
import pytest

import framework as fw
from framework.autograd import gradcheck, gradgradcheck
from framework.autograd.gradcheck import GradcheckError
from framework.errors import AutogradError, DTypeError


def z(*values, grad=True):
    """A complex128 leaf."""
    return fw.tensor(values, dtype=fw.complex128).requires_grad_(grad)


def test_gradient_is_the_direction_of_ascent():
    """d|z|^2 is 2x dx + 2y dy, so the gradient is 2z: a step against it goes down."""
    x = z(3 + 4j, -1j)
    (x.abs() ** 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.detach().numpy())
    y = z(1 + 1j)
    (y * (2 - 3j)).real.sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), [2 + 3j])
    (g,) = fw.autograd.grad((y ** 3).real.sum(), y, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), [3 * (1 - 1j) ** 2])
    np.testing.assert_allclose(fw.autograd.grad(g.abs().sum(), y)[0].numpy(), [6 * (1 + 1j)])


def test_descent_solves_a_complex_system():
    """The convention serves optimisation: plain gradient descent on |Ax - b|^2."""
    a = fw.tensor([[2 + 1j, 1j], [1.0, 3 - 1j]], dtype=fw.complex128)
    b = fw.tensor([1 + 2j, -1j], dtype=fw.complex128)
    x = z(0j, 0j)
    for _ in range(300):
        loss = ((a @ x - b).abs() ** 2).sum()
        (g,) = fw.autograd.grad(loss, x)
        x = (x - 0.05 * g).detach().requires_grad_()
    np.testing.assert_allclose(x.detach().numpy(), np.linalg.solve(a.numpy(), b.numpy()), atol=1e-6)


@pytest.mark.parametrize("f", [
    lambda x: x * (1 + 2j), lambda x: x + z(1j, 2.0, grad=False), lambda x: fw.complex(x, x * 2),
    lambda x: fw.polar(x, x), lambda x: x.to(fw.complex128) * 1j, lambda x: fw.fft.fft(x),
    lambda x: fw.where(x > 0, x, z(1j, 1.0, grad=False)), lambda x: x.cdouble().exp()])
def test_real_inputs_get_real_gradients(f):
    """A real input of a complex computation gets the real part, also to the second order."""
    x = fw.tensor([0.5, -2.0], dtype=fw.float64, requires_grad=True)
    y = f(x)
    assert y.is_complex()
    y.abs().sum().backward()
    assert x.grad.dtype is fw.float64
    assert gradcheck(f, (x,)) and gradgradcheck(f, (x,))


def test_single_precision_stays_single():
    x = fw.tensor([1 + 2j, 3j]).requires_grad_()
    r = fw.tensor([1.0, 2.0], requires_grad=True)
    y = (x * r).exp().sum() / 2.5 + (2 - 1j) * x.mean()
    y.abs().backward()
    assert y.dtype is fw.complex64 and x.grad.dtype is fw.complex64 and r.grad.dtype is fw.float32


def test_a_complex_root_needs_its_gradient():
    y = (z(1j, 2.0) ** 2).sum()
    with pytest.raises(AutogradError, match="real scalar outputs"):
        y.backward()
    with pytest.raises(DTypeError, match="float64"):
        y.backward(fw.ones((), dtype=fw.float64))
    y.backward(fw.ones((), dtype=fw.complex128))


def test_integers_still_cannot_require_gradients():
    with pytest.raises(AutogradError, match="floating and complex"):
        fw.tensor([1]).requires_grad_()


def test_losing_the_imaginary_part_is_said():
    with pytest.warns(UserWarning, match="imaginary part is discarded"):
        assert fw.tensor([1 + 2j]).float().item() == 1.0
    assert fw.tensor([1j, 0j]).bool().tolist() == [True, False]


def test_writing_into_a_part_is_seen_by_the_gradient():
    """``real`` and ``imag`` are views of the tensor, as is ``view_as_real``."""
    x, r = z(1 + 1j, 2 - 1j), fw.tensor([3.0, 4.0], dtype=fw.float64, requires_grad=True)
    y = x * 1
    y.imag.copy_(r)
    y.real.mul_(2.0)
    np.testing.assert_allclose(y.detach().numpy(), [2 + 3j, 4 + 4j])
    ((y * (1 - 1j)).abs() ** 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [16.0, 32.0])  # 2 |1 - i|^2 2x 2
    np.testing.assert_allclose(r.grad.numpy(), [12.0, 16.0])

    def through(x):
        y = x * 1
        fw.view_as_real(y)[..., 0].mul_(fw.tensor([2.0, -3.0], dtype=fw.float64))
        return y * y
    assert gradcheck(through, (z(1 + 2j, 3 - 1j),))


def test_hooks_and_accumulation():
    x, seen = z(1 + 1j), []
    x.register_hook(lambda g: seen.append(g.item()) or g * 2)
    for _ in range(2):
        (x * x).real.sum().backward()
    assert seen == [2 - 2j, 2 - 2j] and x.grad.item() == 8 - 8j


@pytest.mark.parametrize("vectors", [
    lambda a: fw.linalg.eig(a).eigenvectors, lambda a: fw.linalg.eigh(a + a.mH).eigenvectors,
    lambda a: fw.linalg.svd(a, full_matrices=False).U, lambda a: fw.linalg.svd(a, full_matrices=False).Vh])
def test_a_result_that_depends_on_phases_is_refused(vectors):
    rng = np.random.default_rng(0)
    a = fw.tensor(rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))).requires_grad_()
    with pytest.raises(AutogradError, match="phase"):
        vectors(a).imag.sum().backward()
    vectors(a).abs().sum().backward()


@pytest.mark.parametrize("call", [
    lambda x: x < x, lambda x: x.max(), lambda x: x.sort(), lambda x: x.argmin(0), lambda x: fw.maximum(x, x),
    lambda x: x.clamp(min=0.0), lambda x: x.floor(), lambda x: x // 2, lambda x: x % 2, lambda x: x.median(),
    lambda x: x.topk(1), lambda x: x.cummax(0), lambda x: fw.nn.functional.relu(x), lambda x: x.sign(),
    lambda x: fw.nn.functional.mse_loss(x, x), lambda x: fw.nn.functional.layer_norm(x, (2,)),
    lambda x: fw.erf(x), lambda x: fw.atan2(x, x), lambda x: fw.searchsorted(x, x), lambda x: x.quantile(0.5),
    lambda x: fw.fft.rfft(x), lambda x: fw.polar(x, x), lambda x: fw.cdist(x[None], x[None]),
    lambda x: fw.nn.functional.max_pool1d(x[None], 1),
    lambda x: fw.nn.functional.adaptive_max_pool1d(x[None], 1),
    lambda x: fw.nn.functional.cosine_similarity(x, x, 0),
    lambda x: fw.nn.functional.cross_entropy(x, fw.tensor(0)), lambda x: x.histc(), lambda x: x.abs_()])
def test_what_complex_numbers_have_not_is_refused(call):
    """NumPy orders complex numbers by their real part and goes on; here it is an error."""
    with pytest.raises(DTypeError, match=r"complex|real"):
        call(z(1 + 1j, 2.0, grad=False))


def test_gradcheck_sees_wrong_complex_rules():
    """A rule without the conjugate is right for real numbers only."""
    class Square(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * g * x

    real = fw.tensor([1.0, -2.0], dtype=fw.float64, requires_grad=True)
    assert gradcheck(Square.apply, (real,)) and gradcheck(lambda x: x * x, (z(1 + 2j, -3j),))
    for fast in (True, False):
        with pytest.raises(GradcheckError, match="wrong"):
            gradcheck(Square.apply, (z(1 + 2j, -3j),), fast_mode=fast)
    with pytest.warns(UserWarning, match="complex128"):
        gradcheck(lambda x: x * 2, (fw.tensor([1j]).requires_grad_(),), atol=1e-1)


def test_creation_between_complex_ends():
    line = fw.linspace(1j, 2, 3)
    assert line.dtype is fw.complex64 and line.tolist() == [1j, 1 + 0.5j, 2 + 0j]
    np.testing.assert_allclose(fw.logspace(1j, 2, 2).numpy(), [10 ** 1j, 100], rtol=1e-6)
    assert fw.full((2,), 1j).dtype is fw.tensor(1j).dtype is fw.complex64


def test_clipping_counts_absolute_values():
    x = z(3.0, 4j)
    x.grad = z(6.0, 8j, grad=False)
    assert fw.nn.utils.clip_grad_norm_([x], 5.0).item() == pytest.approx(10.0)
    np.testing.assert_allclose(x.grad.numpy(), [3.0, 4j], rtol=1e-6)


def test_jacobian_wants_real_outputs():
    """Of the parts of z -> z^2 it is right: a gradient per part."""
    x = z(1 + 2j, 3j, grad=False)
    with pytest.raises(AutogradError, match="view_as_real"):
        fw.autograd.functional.jacobian(lambda x: x * x, x)
    J = fw.autograd.functional.jacobian(lambda x: fw.view_as_real(x * x), x)
    np.testing.assert_allclose(J[0, :, 0].numpy(), [2 - 4j, 4 + 2j])


def test_modules_keep_complex_parameters_complex():
    """A real dtype names a precision; PyTorch's Module.to drops the imaginary parts."""
    m = fw.nn.Module()
    m.w, m.b = fw.nn.Parameter(fw.tensor([1j])), fw.nn.Parameter(fw.ones(1))
    m.double()
    assert m.w.dtype is fw.complex128 and m.b.dtype is fw.float64 and m.w.item() == 1j
    (m.w.abs().sum() + m.b.sum()).backward()
    fw.optim.SGD(m.parameters(), lr=0.5).step()
    assert m.w.item() == 0.5j and m.b.item() == 0.5


def test_saved_complex_leaves_still_require_gradients(tmp_path):
    fw.save({"z": z(1j, 2.0)}, tmp_path / "z")
    loaded = fw.load(tmp_path / "z")["z"]
    assert loaded.requires_grad and loaded.tolist() == [1j, 2 + 0j]


@pytest.mark.parametrize("f", [
    lambda x: x.abs(), lambda x: x.exp(), lambda x: x.sgn(), lambda x: x.angle(), lambda x: fw.fft.irfft(x),
    lambda x: x * x.conj(), lambda x: x.real * x.imag, lambda x: fw.linalg.inv(x.outer(x) + fw.eye(3) * 2j),
    lambda x: x.norm(), lambda x: x.prod(), lambda x: x.var()])
def test_forward_mode(f):
    """Tangents of complex tensors, though a Jacobian that equals its transpose is not its own adjoint."""
    assert gradcheck(f, (z(1 + 2j, -3j, 0.5 - 1j),), check_forward_ad=True)


def test_parts_share_memory_and_conjugates_do_not():
    x = z(1 + 2j, 3j, grad=False)
    x.imag.zero_()
    assert x.tolist() == [1 + 0j, 0j] and x.real.data_ptr() == x.data_ptr()
    assert x.conj().data_ptr() != x.data_ptr() and x.real.conj()._base is x
    assert fw.complex64.to_real() is fw.float32 and fw.float64.to_complex() is fw.complex128


def test_complex_layers_are_initialised_and_run():
    """Both parts of a complex weight are drawn from the range a real one is."""
    layer = fw.nn.Linear(4, 300, dtype=fw.complex64)
    for part in (layer.weight.real, layer.weight.imag, layer.bias.real, layer.bias.imag):
        assert 0.4 < part.abs().max().item() <= 0.5
    layer(fw.ones(2, 4, dtype=fw.complex64)).abs().sum().backward()
    assert layer.weight.grad.dtype is fw.complex64 and layer.bias.grad.abs().sum().item() > 0
    with pytest.raises(AutogradError, match="leaf"):
        layer.bias.uniform_()


@pytest.mark.parametrize("dtype, eps", [(np.complex64, 1.2e-7), (np.complex128, 2.3e-16)])
def test_signs_of_complex_numbers(dtype, eps):
    """Of length 1 in the direction of the number, the largest and the smallest ones, too."""
    info, rng = np.finfo(dtype), np.random.default_rng(1)
    sizes = np.exp(rng.uniform(np.log(info.tiny), np.log(info.max), 2000))
    turned = np.exp(1j * rng.uniform(0, 7, 2000))
    x = (sizes * turned).astype(dtype).reshape(40, 50)
    for given in (x, x.T, x[:, :7], x[::2, 1:]):
        got = fw.from_numpy(given).sgn().numpy()
        assert got.dtype == dtype
        np.testing.assert_allclose(got, given / np.abs(given), atol=4 * eps, rtol=0)
    large = np.array([complex(info.max, info.max), complex(-info.max, info.max)] * 9, dtype)
    want = [0.5 ** 0.5 * (1 + 1j), 0.5 ** 0.5 * (1j - 1)] * 9
    np.testing.assert_allclose(fw.from_numpy(large).sgn().numpy(), want, atol=4 * eps)


def test_signs_of_complex_numbers_that_are_not_ordinary():
    inf, nan = np.inf, np.nan
    given = [0j, complex(inf, 2), complex(-inf, -2), complex(1, -inf), complex(inf, inf), complex(nan, 1),
             complex(1, nan), 3 + 4j, complex(-0.0, -0.0)]
    want = np.array([0j, 1, -1, -1j, complex(nan, nan), complex(nan, nan), complex(nan, nan), 0.6 + 0.8j, 0])
    for times in (1, 5):
        for dtype in (fw.complex64, fw.complex128):
            got = fw.tensor(given * times, dtype=dtype).sgn().numpy()
            np.testing.assert_allclose(got, np.tile(want, times), rtol=1e-6)
