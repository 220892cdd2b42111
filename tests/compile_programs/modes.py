"""Modes, dtypes, shapes and sizes, constants, random numbers, others that look on."""

import contextlib

import framework as fw

from .base import F, batches, caught, grads, mlp, nn, program


@program
def train_and_eval(compile):
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 2))

    @compile
    def f(x):
        model.zero_grad()
        y = model(x)
        y.square().sum().backward()
        return y, grads(model)
    seen = []
    for i, (x,) in enumerate(batches(6)):
        model.train(i % 3 != 1)
        seen.append((f(x), [b.clone() for b in model.buffers()]))
    return seen


@program
def grad_modes(compile):
    w = fw.randn(3, requires_grad=True)

    @compile
    def f(x):
        y = w * x
        with fw.no_grad():
            z = y * 2
        y = y + z
        if y.requires_grad:
            y.sum().backward()
        return y, y.requires_grad
    seen = []
    for mode in (fw.no_grad, contextlib.nullcontext, fw.inference_mode, contextlib.nullcontext, fw.no_grad):
        with mode():
            seen.append(f(fw.ones(3)))
    return seen, w.grad


@program
def dtypes_shapes_strides(compile):
    @compile
    def f(x):
        w = fw.ones(x.shape[-1], dtype=x.dtype, requires_grad=True)
        y = (x.T.T * w).tanh()
        y.sum().backward()
        return y, w.grad
    kinds = [fw.randn(2, 3), fw.randn(2, 3).double(), fw.randn(4, 3), fw.randn(3, 2).T, fw.randn(2, 3)[:,
    ::2],
             fw.randn(2, 3).to(fw.float16), fw.randn(0, 3), fw.randn(3), fw.randn(2, 3)]
    return [f(x) for x in kinds]


@program
def broadcasting_comes_and_goes(compile):
    w = fw.randn(1, 3, requires_grad=True)

    @compile
    def f(x):
        (w * x + w).exp().sum().backward()
        return w.grad.clone()
    return [f(x) for x in (fw.randn(1, 3), fw.randn(4, 3), fw.randn(1, 3), fw.randn(2, 4, 3), fw.randn(3))]


@program
def complex_and_real(compile):
    @compile
    def f(x):
        w = fw.ones(3, dtype=x.dtype, requires_grad=True)
        y = (w * x).exp()
        (y.abs() if y.is_complex() else y).sum().backward()
        return y, w.grad
    real, z = fw.randn(3), fw.complex(fw.randn(3), fw.randn(3))
    return [f(x) for x in (real, z, real, z, real)]


@program
def bfloat16(compile):
    try:
        fw.zeros(1, dtype=fw.bfloat16)
    except ImportError:
        return None

    @compile
    def f(x):
        w = fw.ones(3, dtype=x.dtype, requires_grad=True)
        (w * x).tanh().sum().backward()
        return w.grad
    return [f(x) for x in (fw.randn(3).to(fw.bfloat16), fw.randn(3), fw.randn(3).to(fw.bfloat16))]


@program
def constants_that_look_alike(compile):
    w = fw.ones(3, requires_grad=True)

    @compile
    def f(c):
        y = w * c
        y = (y / 1.0).atan2(w * 0 - 1)
        y.sum().backward()
        return y, w.grad.clone()
    return [f(c) for c in (0.0, -0.0, 0, True, 1, 1.0, False, float("nan"), float("inf"), -0.0, 2.5)]


@program
def masks_and_infinities(compile):
    w = fw.tensor([float("inf"), 1.0, -1.0], requires_grad=True)

    @compile
    def f(masked):
        w.grad = None
        y = w.sin()
        (fw.where(w < 100, y, fw.zeros(3)) if masked else y * 2).sum().backward()
        return w.grad
    return [f(masked) for masked in (True, False, True, True, False, False)]


@program
def no_gradient_on_the_way(compile):
    """A derivative that is not there for one operand: what led to it is not come by."""
    from framework.ops.record.op import OPS, Op
    scaled = Op("scaled", "x y", kernel=lambda xp, x, y: x * y, vjp={"y": lambda g, x: g * x})
    OPS.remove(scaled)
    a, b = fw.ones(3, requires_grad=True), fw.ones(3, requires_grad=True)

    @compile
    def f():
        scaled.run(a.exp(), b.exp()).sum().backward()
        return a.grad, b.grad.clone()
    return [f() for _ in range(3)]


@program
def casts_by_autocast(compile):
    model = mlp()

    @compile
    def step(x):
        model.zero_grad()
        with fw.autocast("cpu", dtype=fw.float16):
            y = model(x)
        y.float().sum().backward()
        return y, grads(model)
    return [step(x) for (x,) in batches(3)]


@program
def interceptors_and_anomaly_mode(compile):
    from framework.seam import intercept
    w, names = fw.ones(3, requires_grad=True), []

    def note(event, proceed):
        names.append((event.kind, event.name))
        return proceed(*event.inputs, **event.settings)

    @compile
    def f(x):
        (w * x).log().sum().backward()
        return w.grad.clone()
    seen = [f(fw.ones(3)), f(fw.ones(3))]
    with intercept(note):
        seen.append(f(fw.ones(3)))
    with fw.autograd.set_detect_anomaly(True):
        seen.append(caught(f, fw.tensor([0.0, 1.0, 1.0])))
    return seen, names, f(fw.ones(3))


@program
def vmap_and_functional(compile):
    w = fw.randn(3, requires_grad=True)

    @compile
    def f(x):
        y = fw.func.vmap(lambda row: (row * w).tanh().sum())(x)
        y.sum().backward()
        g = fw.func.grad(lambda v: (v * x).exp().sum())(w.detach())
        return y, g, w.grad.clone()
    return [f(fw.randn(2, 3)) for _ in range(3)]


@program
def random_streams(compile):
    w = fw.ones(4, requires_grad=True)

    @compile
    def f(p):
        y = F.dropout(w * fw.randn(4), p) + fw.rand(4)
        if p > 0.4:
            fw.manual_seed(3)
        y = F.dropout(y + fw.bernoulli(fw.full((4,), 0.5)), 0.3)
        y.sum().backward()
        return y, w.grad.clone()
    return [f(p) for p in (0.1, 0.5, 0.1, 0.0, 0.5)]


@program
def large_arrays(compile):
    w = fw.randn(400, 400, requires_grad=True)

    @compile
    def f(x):
        y = ((w * x).tanh() * w).sigmoid() + w
        y.sum().backward()
        g, w.grad = w.grad, None
        return y, g
    return [f(fw.randn(400, 400)) for _ in range(3)]


@program
def small_then_large(compile):
    @compile
    def f(w):
        (w.tanh() * w + w.exp()).sum().backward()
        return w.grad
    return [f(fw.randn(n, requires_grad=True)) for n in (3, 3, 150_000, 3, 150_000)]


@program
def many_structures(compile):
    """More than are kept."""
    w = fw.full((3,), 0.5, requires_grad=True)

    @compile
    def f(n):
        y = w
        for _ in range(n):
            y = y.sin()
        y.sum().backward()
        return w.grad.clone()
    return [f(n % 12 + 1) for n in range(30)]


@program
def losses_with_checked_targets(compile):
    w = fw.randn(4, 3, requires_grad=True)

    @compile
    def f(target):
        loss = F.cross_entropy(w, target)
        loss.backward()
        return loss, w.grad.clone()
    return [caught(f, fw.tensor(t)) for t in ([0, 1, 2, 0], [0, 1, 5, 0], [2, 2, 2, 2], [0, 1, -100, 0])]


@program
def asking_whether_compiled(compile):
    @compile
    def f(x):
        return x * 2
    return fw.compiler.is_compiling(), f(fw.ones(2)), fw.compiler.is_compiling(), f.__name__


@program
def picks(compile):
    """Which of several outputs leads on."""
    w = fw.randn(3, 2, requires_grad=True)

    @compile
    def f(i):
        fw.svd(w)[1][0].backward() if i == 2 else w.unbind()[i].exp().sum().backward()
        return w.grad.clone()
    return [f(i) for i in (0, 1, 0, 1, 2, 0)]


@program
def another_device(compile):
    @compile
    def f(x):
        y = (x * 2 + 1).tanh()
        return y, y.shape, str(y.device), caught(lambda: y.sum().item())
    found = [f(x) for x in (fw.ones(2), fw.ones(2, device="meta"), fw.ones(2), fw.ones(3, device="meta"),
                            fw.ones(2))]
    return [(y if device == "cpu" else None, shape, device, told) for y, shape, device, told in found]
