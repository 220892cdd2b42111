"""One step of each optimizer, over many small and over one large tensor; LBFGS."""

from types import ModuleType
from typing import Any

from ..workload import Case, normal, workload

# per element and step: floats read and written, parameter and gradient with them
TRAFFIC = {"SGD": 5, "Adagrad": 5, "RMSprop": 5, "Adam": 7, "AdamW": 7}
SETTINGS: dict[str, dict] = {"SGD": {"momentum": 0.9}}
LAYOUTS = {"many": (400, 32, 32), "one": (1, 2048, 2048)}
SAYS = {"many": "400 tensors of 32x32", "one": "one tensor of 2048x2048"}


def _step(M: ModuleType, *, optimizer: str, layout: tuple[int, int, int]) -> Case:
    count, rows, columns = layout
    parameters = [normal(M, rows, columns, seed=s, requires_grad=True) for s in range(count)]
    for s, p in enumerate(parameters):
        p.grad = normal(M, rows, columns, seed=count + s)
    start = [p.detach().clone() for p in parameters[:3]]
    stepper = getattr(M.optim, optimizer)(parameters, lr=1e-4, **SETTINGS.get(optimizer, {}))
    return Case(stepper.step, lambda _: [p - s for p, s in zip(parameters, start)],
                bytes=4 * TRAFFIC[optimizer] * count * rows * columns)


for _name in TRAFFIC:
    for _key, _layout in LAYOUTS.items():
        _with = " with momentum" if _name in SETTINGS else ""
        workload(f"{_name.lower()}-{_key}", f"Step of {_name}{_with} over {SAYS[_key]}",
                 tiny={"layout": (3, 2, 4) if _key == "many" else (1, 4, 4)},
                 sizes={"optimizer": _name, "layout": _layout})(_step)


def _by_hand(M: ModuleType, *, layout: tuple[int, int, int]) -> Case:
    """Adam and an average of the weights as many write them: in-place methods, tensor by tensor."""
    count, rows, columns = layout
    weights, grads, means, squares, averages = (
        [normal(M, rows, columns, seed=5 * s + k) for s in range(count)] for k in range(5))
    for v in squares:
        v.abs_()
    start = [w.clone() for w in weights[:3]]

    def step() -> None:
        with M.no_grad():
            for w, g, m, v, a in zip(weights, grads, means, squares, averages):
                m.mul_(0.9).add_(g, alpha=0.1)
                v.mul_(0.999).addcmul_(g, g, value=0.001)
                w.addcdiv_(m, v.sqrt().add_(1e-8), value=-1e-4)
                a.lerp_(w, 0.01)
    return Case(step, lambda _: [*[w - s for w, s in zip(weights, start)], means[0], squares[0], averages[0]],
                bytes=4 * 9 * count * rows * columns)


for _key, _layout in LAYOUTS.items():
    workload(f"by-hand-{_key}", f"Adam written with in-place methods, and an average, over {SAYS[_key]}",
             tiny={"layout": (3, 2, 4) if _key == "many" else (1, 4, 4)}, sizes={"layout": _layout})(_by_hand)


@workload(tiny={"rows": 20, "columns": 4, "iterations": 3}, tolerance=1e-2)
def lbfgs(M: ModuleType, *, rows: int = 2000, columns: int = 50, iterations: int = 6) -> Case:
    """LBFGS, 6 iterations with strong-Wolfe search, on logistic regression of 2000x50."""
    x, w = normal(M, rows, columns), normal(M, columns, seed=1)
    y = (x @ normal(M, columns, seed=2) > 0).float()
    start = w.clone()
    w.requires_grad_()
    calls = 0

    def run() -> Any:
        nonlocal calls
        calls = 0
        with M.no_grad():
            w.copy_(start)
        optimizer = M.optim.LBFGS([w], max_iter=iterations, max_eval=100,
                                  line_search_fn="strong_wolfe")

        def closure() -> Any:
            nonlocal calls
            calls += 1
            optimizer.zero_grad()
            loss = M.nn.functional.binary_cross_entropy_with_logits(x @ w, y) + 0.01 * w.square().sum()
            loss.backward()
            return loss
        optimizer.step(closure)
        return closure()
    # as many evaluations, too
    return Case(run, lambda loss: [loss, w, M.tensor(calls)])
