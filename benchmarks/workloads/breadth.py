"""Programs of other kinds than the families beside: what people write, small."""

from types import ModuleType
from typing import Any

from ..workload import Case, fill, integers, normal, training, workload


def _attention(M: ModuleType, width: int, heads: int) -> Any:
    """A layer of a transformer: attention and two linear layers, norms before both."""
    n = M.nn

    class Layer(n.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = n.LayerNorm(width), n.LayerNorm(width)
            self.qkv, self.out = n.Linear(width, 3 * width), n.Linear(width, width)
            self.mlp = n.Sequential(n.Linear(width, 4 * width), n.GELU(), n.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            parts = self.qkv(self.norm1(x)).reshape(b, t, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            y = n.functional.scaled_dot_product_attention(parts[0], parts[1], parts[2])
            x = x + self.out(y.transpose(1, 2).reshape(b, t, width))
            return x + self.mlp(self.norm2(x))
    return Layer()


@workload(tiny={"batch": 2, "width": 8, "layers": 1, "size": 8}, training=True)
def vit_step(M: ModuleType, *, batch: int = 16, width: int = 96, layers: int = 4, size: int = 32) -> Case:
    """Training step of a vision transformer: 32x32 images in patches of 4x4, 4 layers of width 96."""
    n = M.nn

    class Model(n.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = n.Conv2d(3, width, 4, stride=4)
            self.place = n.Parameter(M.zeros(1, (size // 4) ** 2, width))
            self.layers = n.Sequential(*[_attention(M, width, 4) for _ in range(layers)])
            self.head = n.Linear(width, 10)

        def forward(self, x: Any) -> Any:
            x = self.patches(x).flatten(2).transpose(1, 2) + self.place
            return self.head(self.layers(x).mean(1))
    model = fill(M, Model())
    x, y = normal(M, batch, 3, size, size), integers(M, 10, batch)
    return training(M, model, lambda: n.functional.cross_entropy(model(x), y),
                    M.optim.SGD(model.parameters(), lr=1e-3), forward=0)


def _twice(M: ModuleType, inner: int, outer: int) -> Any:
    n = M.nn
    return n.Sequential(n.Conv2d(inner, outer, 3, padding=1), n.GroupNorm(4, outer), n.SiLU(),
                        n.Conv2d(outer, outer, 3, padding=1), n.SiLU())


@workload(tiny={"batch": 1, "width": 8, "size": 8}, training=True, tolerance=5e-3)
def unet_step(M: ModuleType, *, batch: int = 4, width: int = 16, size: int = 64) -> Case:
    """Training step of a U-Net of two levels on 64x64 images: group norms, transposed and resized maps."""
    n, F = M.nn, M.nn.functional

    class Model(n.Module):
        def __init__(self) -> None:
            super().__init__()
            self.enter, self.down = _twice(M, 3, width), _twice(M, width, 2 * width)
            self.bottom = _twice(M, 2 * width, 4 * width)
            self.up = n.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
            self.middle, self.leave = _twice(M, 4 * width, width), _twice(M, 2 * width, width)
            self.last = n.Conv2d(width, 1, 1)

        def forward(self, x: Any) -> Any:
            a = self.enter(x)
            b = self.down(F.avg_pool2d(a, 2))
            c = self.up(self.bottom(F.avg_pool2d(b, 2)))
            d = self.middle(M.cat([b, c], 1))
            d = F.interpolate(d, scale_factor=2, mode="bilinear", align_corners=False)
            return self.last(self.leave(M.cat([a, d], 1)))
    model = fill(M, Model())
    x, y = normal(M, batch, 3, size, size), (normal(M, batch, 1, size, size, seed=1) > 0).to(x_dtype(M))
    return training(M, model, lambda: F.binary_cross_entropy_with_logits(model(x), y),
                    M.optim.SGD(model.parameters(), lr=1e-3), forward=0)


def x_dtype(M: ModuleType) -> Any:
    """The dtype of the data."""
    return M.get_default_dtype()


@workload(tiny={"batch": 2, "width": 8, "blocks": 1, "size": 8}, training=True, tolerance=0.05, kinks=True)
def mobilenet_step(M: ModuleType, *, batch: int = 16, width: int = 24, blocks: int = 4,
                   size: int = 32) -> Case:
    """Training step of inverted bottlenecks (depthwise, squeeze and excitation, hardswish), batch 16."""
    n, F = M.nn, M.nn.functional

    class Block(n.Module):
        def __init__(self, stride: int) -> None:
            super().__init__()
            wide = 3 * width
            self.grow = n.Sequential(n.Conv2d(width, wide, 1, bias=False), n.BatchNorm2d(wide), n.Hardswish())
            self.deep = n.Sequential(n.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
                                     n.BatchNorm2d(wide), n.Hardswish())
            self.squeeze = n.Sequential(n.AdaptiveAvgPool2d(1), n.Conv2d(wide, wide // 4, 1), n.ReLU(),
                                        n.Conv2d(wide // 4, wide, 1), n.Hardsigmoid())
            self.shrink = n.Sequential(n.Conv2d(wide, width, 1, bias=False), n.BatchNorm2d(width))
            self.stride = stride

        def forward(self, x: Any) -> Any:
            y = self.deep(self.grow(x))
            y = self.shrink(y * self.squeeze(y))
            return y if self.stride > 1 else x + y
    model = fill(M, n.Sequential(n.Conv2d(3, width, 3, 2, 1), *[Block(1 + i % 2) for i in range(blocks)],
                                 n.AdaptiveAvgPool2d(1), n.Flatten(), n.Linear(width, 10)))
    x, y = normal(M, batch, 3, size, size), integers(M, 10, batch)
    case = training(M, model, lambda: F.cross_entropy(model(x), y),
                    M.optim.SGD(model.parameters(), lr=1e-4), forward=0)
    case.values = lambda value: [value, model[-1].weight.grad]  # norms leave others nothing but rounding
    return case


@workload(tiny={"batch": 2, "width": 4, "length": 20}, training=True)
def tcn_step(M: ModuleType, *, batch: int = 16, width: int = 32, length: int = 256) -> Case:
    """Training step of causal dilated convolutions over sequences of 256, batch 16."""
    n, F = M.nn, M.nn.functional

    class Layer(n.Module):
        def __init__(self, dilation: int) -> None:
            super().__init__()
            self.reach = 2 * dilation
            self.conv = n.Conv1d(width, width, 3, dilation=dilation)

        def forward(self, x: Any) -> Any:
            return x + M.tanh(self.conv(F.pad(x, (self.reach, 0))))
    model = fill(M, n.Sequential(n.Conv1d(8, width, 1), *[Layer(2 ** i) for i in range(4)],
                                 n.Conv1d(width, 1, 1)))
    x, y = normal(M, batch, 8, length), normal(M, batch, 1, length, seed=1)
    return training(M, model, lambda: F.mse_loss(model(x), y), M.optim.Adam(model.parameters(), lr=1e-4),
                    forward=0)


@workload(tiny={"batch": 2, "width": 4}, training=True, tolerance=0.05, kinks=True)
def dcgan_step(M: ModuleType, *, batch: int = 16, width: int = 16) -> Case:
    """A step of a convolutional generator by its critic's judgement: 32x32 images, batch 16."""
    n, F = M.nn, M.nn.functional
    model = n.Sequential(
        n.ConvTranspose2d(32, 4 * width, 4, bias=False), n.BatchNorm2d(4 * width), n.ReLU(),
        n.ConvTranspose2d(4 * width, 2 * width, 4, 2, 1, bias=False), n.BatchNorm2d(2 * width), n.ReLU(),
        n.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False), n.BatchNorm2d(width), n.ReLU(),
        n.ConvTranspose2d(width, 3, 4, 2, 1), n.Tanh())
    critic = n.Sequential(n.Conv2d(3, width, 4, 2, 1), n.LeakyReLU(0.2), n.Conv2d(width, 2 * width, 4, 2, 1),
                          n.LeakyReLU(0.2), n.Flatten(), n.Linear(2 * width * 64, 1))
    fill(M, model), fill(M, critic)
    z, ones = normal(M, batch, 32, 1, 1), M.ones(batch, 1, dtype=x_dtype(M))
    return training(M, model, lambda: F.binary_cross_entropy_with_logits(critic(model(z)), ones),
                    M.optim.Adam(model.parameters(), lr=1e-4, betas=(0.5, 0.999)), forward=0)


@workload(tiny={"batch": 4, "width": 8}, training=True, tolerance=5e-3)
def wgan_gp_step(M: ModuleType, *, batch: int = 64, width: int = 128) -> Case:
    """A critic's step with a gradient penalty (backward through backward), width 128, batch 64, Adam."""
    n = M.nn
    model = fill(M, n.Sequential(n.Linear(32, width), n.SiLU(), n.Linear(width, width), n.SiLU(),
                                 n.Linear(width, 1)))
    real, made, mixed = (normal(M, batch, 32, seed=i) for i in range(3))

    def loss() -> Any:
        between = (real + (made - real) * mixed.sigmoid()).requires_grad_()
        slope, = M.autograd.grad(model(between).sum(), between, create_graph=True)
        penalty = (slope.norm(2, dim=1) - 1).square().mean()
        return model(made).mean() - model(real).mean() + 10 * penalty
    case = training(M, model, loss, M.optim.Adam(model.parameters(), lr=1e-4), forward=0)
    case.values = lambda value: [value]  # the last bias has a gradient of nothing but rounding
    return case


@workload(tiny={"tasks": 2, "width": 8}, training=True)
def maml_step(M: ModuleType, *, tasks: int = 4, width: int = 40) -> Case:
    """Meta-learning: the gradient through one step of gradient descent on each of 4 tasks."""
    n, F = M.nn, M.nn.functional
    model = fill(M, n.Sequential(n.Linear(1, width), n.Tanh(), n.Linear(width, width), n.Tanh(),
                                 n.Linear(width, 1)))
    named = [p for _, p in model.named_parameters()]
    data = [normal(M, 10, 1, seed=i) for i in range(2 * tasks)]

    def predicted(weights: list, x: Any) -> Any:
        for i in range(0, 6, 2):
            x = F.linear(x, weights[i], weights[i + 1])
            x = M.tanh(x) if i < 4 else x
        return x

    def loss() -> Any:
        total = 0.0
        for i in range(tasks):
            x, y = data[2 * i], data[2 * i + 1]
            slopes = M.autograd.grad(F.mse_loss(predicted(named, x), M.sin(x)), named, create_graph=True)
            moved = [w - 0.01 * g for w, g in zip(named, slopes)]
            total = total + F.mse_loss(predicted(moved, y), M.sin(y))
        return total / tasks
    return training(M, model, loss, M.optim.Adam(model.parameters(), lr=1e-4), forward=0)


@workload(tiny={"steps": 3, "width": 8, "words": 11})
def beam_search(M: ModuleType, *, steps: int = 20, width: int = 64, words: int = 500, beams: int = 5) -> Case:
    """Decoding with 5 beams, 20 steps of a GRU cell over 500 words: topk, gather, stack."""
    n = M.nn
    model = fill(M, n.ModuleDict({"embed": n.Embedding(words, width), "cell": n.GRUCell(width, width),
                                  "head": n.Linear(width, words)}))

    def run() -> Any:
        with M.no_grad():
            h = M.zeros(beams, width, dtype=x_dtype(M))
            scores = M.zeros(beams, dtype=x_dtype(M))
            scores[1:] = -1e9
            last, found = M.zeros(beams, dtype=M.int64), M.zeros(beams, 0, dtype=M.int64)
            for _ in range(steps):
                h = model["cell"](model["embed"](last), h)
                total = scores[:, None] + M.log_softmax(model["head"](h), -1)
                scores, at = total.flatten().topk(beams)
                before, last = at // words, at % words
                h, found = h[before], M.cat([found[before], last[:, None]], 1)
        return scores
    return Case(run)


@workload(tiny={"points": 30, "centres": 3})
def k_means(M: ModuleType, *, points: int = 4000, centres: int = 32) -> Case:
    """Ten rounds of Lloyd's algorithm: 4000 points of 16 numbers, 32 centres (cdist, argmin, index_add)."""
    x = normal(M, points, 16)

    def run() -> Any:
        c = x[:centres].clone()
        ones = M.ones(points, dtype=x.dtype)
        for _ in range(10):
            nearest = M.cdist(x, c).argmin(1)
            count = M.zeros(centres, dtype=x.dtype).index_add_(0, nearest, ones)
            c = M.zeros(centres, 16, dtype=x.dtype).index_add_(0, nearest, x) / count.clamp(min=1)[:, None]
        return M.cdist(x, c).min(1).values.mean()
    return Case(run)


@workload(tiny={"count": 10})
def tiny_graph(M: ModuleType, *, count: int = 100) -> Case:
    """A graph of 600 operations on single numbers, forward and backward."""
    xs = [normal(M, 1, seed=i, requires_grad=True) for i in range(4)]

    def run() -> Any:
        for x in xs:
            x.grad = None
        a, b, c, d = xs
        for _ in range(count):
            a, b = M.tanh(a * c + d), (b - a) * 0.5
        (a * a + b).sum().backward()
        return a
    return Case(run, lambda a: [a, *[x.grad for x in xs]])


@workload(tiny={"nodes": 20, "edges": 40, "width": 4}, training=True)
def graph_network_step(M: ModuleType, *, nodes: int = 2000, edges: int = 10000, width: int = 32) -> Case:
    """Training step of a graph network: messages along 10000 edges between 2000 nodes, three rounds."""
    n, F = M.nn, M.nn.functional
    model = fill(M, n.ModuleList([n.Linear(2 * width, width) for _ in range(3)]))
    x, y = normal(M, nodes, width), integers(M, width, nodes)
    source, target = integers(M, nodes, edges), integers(M, nodes, edges, seed=1)

    def loss() -> Any:
        h = x
        for layer in model:
            heard = M.zeros(nodes, width, dtype=x.dtype).index_add(0, target, h[source])
            h = M.tanh(layer(M.cat([h, heard], 1)))
        return F.cross_entropy(h, y)
    return training(M, model, loss, M.optim.Adam(model.parameters(), lr=1e-4), forward=0)


@workload(tiny={"batch": 4, "width": 8}, training=True)
def vae_step(M: ModuleType, *, batch: int = 64, width: int = 128) -> Case:
    """Training step of a variational autoencoder of 784 numbers, width 128, batch 64 (its noise is given)."""
    n, F = M.nn, M.nn.functional
    model = fill(M, n.ModuleDict({"enter": n.Linear(784, width), "both": n.Linear(width, 40),
                                  "back": n.Linear(20, width), "leave": n.Linear(width, 784)}))
    x, noise = normal(M, batch, 784).sigmoid(), normal(M, batch, 20, seed=1)

    def loss() -> Any:
        mean, log = model["both"](F.softplus(model["enter"](x))).chunk(2, 1)
        z = mean + noise * (0.5 * log).exp()
        made = model["leave"](F.softplus(model["back"](z)))
        rest = -0.5 * (1 + log - mean.square() - log.exp()).sum()
        return (F.binary_cross_entropy_with_logits(made, x, reduction="sum") + rest) / batch
    return training(M, model, loss, M.optim.Adam(model.parameters(), lr=1e-4), forward=0)


@workload(tiny={"batch": 2, "size": 8}, training=True, tolerance=5e-3)
def spatial_transformer_step(M: ModuleType, *, batch: int = 32, size: int = 28) -> Case:
    """Training step of a spatial transformer: a net turns the image by affine_grid and grid_sample."""
    n, F = M.nn, M.nn.functional
    model = fill(M, n.ModuleDict({"place": n.Sequential(n.Flatten(), n.Linear(size * size, 32), n.Tanh(),
                                                        n.Linear(32, 6)),
                                  "net": n.Sequential(n.Flatten(), n.Linear(size * size, 10))}))
    x, y = normal(M, batch, 1, size, size), integers(M, 10, batch)

    def loss() -> Any:
        theta = 0.3 * M.tanh(model["place"](x)).reshape(-1, 2, 3)
        grid = F.affine_grid(theta, x.shape, align_corners=False)
        return F.cross_entropy(model["net"](F.grid_sample(x, grid, align_corners=False)), y)
    return training(M, model, loss, M.optim.SGD(model.parameters(), lr=1e-3), forward=0)
