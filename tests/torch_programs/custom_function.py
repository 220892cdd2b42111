# custom autograd function, double backward, jacobian, hooks, torch.func
import torch
from torch.autograd import Function, grad, gradcheck


class Exp(Function):
    @staticmethod
    def forward(ctx, i):
        r = i.exp()
        ctx.save_for_backward(r)
        return r

    @staticmethod
    def backward(ctx, g):
        (r,) = ctx.saved_tensors
        return g * r


x = torch.randn(3, dtype=torch.double, requires_grad=True)
print(gradcheck(Exp.apply, (x,), eps=1e-6, atol=1e-4))
y = (x**3).sum()
(g,) = grad(y, x, create_graph=True)
print(torch.allclose(grad(g.sum(), x)[0], 6 * x))
print(
    torch.autograd.functional.jacobian(lambda a: a**2, torch.ones(2)),
    torch.autograd.functional.hessian(lambda a: (a**3).sum(), torch.ones(2)),
)
from torch.func import functional_call, jacrev, vmap
from torch.func import grad as fgrad

print(vmap(fgrad(lambda a: (a**2).sum()))(torch.ones(2, 3)).shape, jacrev(torch.sin)(torch.zeros(2)))
m = torch.nn.Linear(2, 1)
print(functional_call(m, dict(m.named_parameters()), (torch.ones(1, 2),)).shape)


def penalty(D, real, fake):
    a = torch.rand(real.size(0), 1).expand(real.size())
    i = (a * real + (1 - a) * fake).requires_grad_(True)
    o = D(i)
    g = torch.autograd.grad(
        outputs=o,
        inputs=i,
        grad_outputs=torch.ones(o.size()),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    g = g.view(g.size(0), -1)
    return ((g.norm(2, dim=1) - 1) ** 2).mean()


D = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
l = penalty(D, torch.rand(3, 4), torch.rand(3, 4))
l.backward()
print(l.shape)
v = torch.ones(2, requires_grad=True)
v.register_hook(lambda g: g * 2)
(v * 3).sum().backward()
print(v.grad)
with torch.autograd.set_detect_anomaly(True):
    (v * 2).sum().backward()
print(
    torch.is_grad_enabled(),
    torch.autograd.forward_ad is not None,
    torch.utils.checkpoint.checkpoint(lambda a: a.sin(), v, use_reentrant=False),
)
