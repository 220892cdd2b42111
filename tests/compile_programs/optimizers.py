"""Optimizers: settings, schedulers, closures, accumulation, steps that a plan refuses."""

import copy

import numpy as np

import framework as fw

from .base import F, batches, caught, grads, mlp, nn, program, trainer


@program
def accumulation(compile):
    model = mlp()
    optimizer = fw.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    @compile
    def step(parts):
        optimizer.zero_grad()
        for (x,) in parts:
            (model(x).square().mean() / len(parts)).backward()
        optimizer.step()
    for n in (2, 3, 2, 1):
        step(batches(n))
    return list(model.parameters()), grads(model)


@program
def optimizer_settings_change(compile):
    model = mlp()
    optimizer = fw.optim.AdamW(model.parameters(), lr=0.01)

    def after():
        optimizer.param_groups[0]["lr"] *= 0.5
        optimizer.param_groups[0]["weight_decay"] += 0.1
    return trainer(compile, model, optimizer, lambda x: model(x).square().mean(), batches(5), after)


@program
def schedulers_and_clipping(compile):
    model = mlp()
    optimizer = fw.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, nesterov=True)
    schedule = fw.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)

    @compile
    def step(x):
        optimizer.zero_grad(set_to_none=False)
        loss = model(x).exp().mean()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        schedule.step()
        return loss, norm, schedule.get_last_lr()
    return [step(x) for (x,) in batches(6)], list(model.parameters())


@program
def closures_of_lbfgs(compile):
    model = mlp()
    optimizer = fw.optim.LBFGS(model.parameters(), max_iter=4)

    @compile
    def step(x):
        def closure():
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss
        return optimizer.step(closure)
    return [step(x) for (x,) in batches(3)], list(model.parameters())


@program
def adversaries(compile):
    make, judge = mlp(), nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(), nn.Linear(4, 1))
    a = fw.optim.Adam(make.parameters(), betas=(0.5, 0.9))
    b = fw.optim.RMSprop(judge.parameters())

    @compile
    def step(x, real):
        fake = make(x)
        b.zero_grad()
        lost = F.softplus(judge(fake.detach())).mean() + F.softplus(-judge(real)).mean()
        lost.backward()
        b.step()
        a.zero_grad()
        won = F.softplus(-judge(fake)).mean()
        won.backward()
        a.step()
        return lost, won
    return ([step(fw.randn(5, 4), fw.randn(5, 3)) for _ in range(4)],
            [*make.parameters(), *judge.parameters()])


@program
def scaled_losses(compile):
    model = mlp()
    optimizer = fw.optim.SGD(model.parameters(), lr=0.1)
    scaler = fw.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)

    @compile
    def step(x, spoil):
        optimizer.zero_grad()
        loss = model(x).square().mean() * (float("inf") if spoil else 1.0)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss, scaler.get_scale()
    return [step(x, i == 2) for i, (x,) in enumerate(batches(5))], list(model.parameters())


@program
def moving_average_of_weights(compile):
    model = mlp()
    optimizer = fw.optim.SGD(model.parameters(), lr=0.1)
    mean = copy.deepcopy(model)

    def after():
        with fw.no_grad():
            for p, q in zip(mean.parameters(), model.parameters()):
                p.lerp_(q, 0.1)
    return trainer(compile, model, optimizer, lambda x: model(x).square().mean(), batches(4), after), list(
        mean.parameters())


@program
def steps_of_every_kind(compile):
    """State that is not there yet, missing and replaced gradients, groups, a parameter in two of them."""
    seen = []
    o = fw.optim
    for kind in (o.SGD, o.Adam, o.AdamW, o.RMSprop, o.Adagrad, o.NAdam):
        a, b, c = (nn.Parameter(fw.randn(3)) for _ in range(3))
        half = nn.Parameter(fw.randn(2).to(fw.float16))
        optimizer = kind([{"params": [a, b]}, {"params": [c, half], "lr": 0.5}], lr=0.1)

        @compile
        def step(x, optimizer=optimizer, a=a, b=b, c=c, half=half):
            optimizer.zero_grad()
            loss = (a * x).sum() + (b * b * x).sum() * (x[0] > 0) + (c.exp() * x).sum()
            (loss + half.sum().float()).backward()
            if x[1] > 0:
                b.grad = None
            optimizer.step()
            return a.grad, [p._version for p in (a, b, c, half)]
        for i in range(5):
            seen.append(step(fw.randn(3)))
            if i == 3:
                optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
                optimizer.param_groups[0]["lr"] = fw.tensor(0.2)
        seen.append([a, b, c, half, optimizer.state_dict()["state"]])
    return seen


@program
def steps_that_are_refused(compile):
    w, v = nn.Parameter(fw.ones(3)), nn.Parameter(fw.ones(2))
    optimizer = fw.optim.SGD([w, v], lr=0.1, momentum=0.9)
    twice = fw.optim.Adam([{"params": [w]}, {"params": [v]}])
    twice.param_groups[1]["params"].append(w)

    @compile
    def step(kind):
        (w.sum() + v.sum()).backward()
        if kind == "shape":
            v.data = fw.ones(4)
        if kind == "read-only":
            v.data = fw.from_numpy(np.broadcast_to(np.float32(1), (2,)))
        (twice if kind == "twice" else optimizer).step()
        if kind == "group":
            del optimizer.param_groups[0]["momentum"]
            optimizer.step()
        return w._version, v._version
    seen = []
    for kind in ("", "", "shape", "", "twice", "twice", "read-only", "", "group", ""):
        seen.append((caught(step, kind), w.clone(), v.clone()))
        v.data = fw.ones(2)
        w.grad = v.grad = None
        optimizer.param_groups[0]["momentum"] = 0.9
    return seen, twice.state_dict()["state"]


@program
def hooks_of_optimizers(compile):
    w, log = nn.Parameter(fw.ones(3)), []
    optimizer = fw.optim.Adam([w])
    optimizer.register_step_pre_hook(lambda *args: log.append(w.detach().clone()))
    optimizer.register_step_post_hook(lambda *args: log.append(w.detach().clone()))

    @compile
    def step():
        w.square().sum().backward()
        optimizer.step()
        return [s.copy() for s in optimizer.state.values()]
    return [step() for _ in range(3)], log
