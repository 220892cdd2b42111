"""Kinds of networks: convolutions, recurrence, attention, embeddings, caches."""

import framework as fw

from .base import F, caught, nn, program, trainer


@program
def convolutions(compile):
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(36, 3))
    data = [(fw.randn(2, 1, 8, 8),) for _ in range(4)]
    return trainer(compile, model, fw.optim.Adam(model.parameters()), lambda x: F.cross_entropy(
        model(x), fw.tensor([0, 2])), data)


@program
def recurrent_loops(compile):
    cell = nn.LSTMCell(3, 4)

    def loss(x):
        h = c = fw.zeros(2, 4)
        for part in x:
            h, c = cell(part, (h, c))
        return h.sum()
    return trainer(compile, cell, fw.optim.SGD(cell.parameters(), lr=0.1), loss,
                   [(fw.randn(n, 2, 3),) for n in (3, 3, 5, 2, 3, 5)])


@program
def embeddings_and_attention(compile):
    table, block = nn.Embedding(7, 8), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.1)
    model = nn.ModuleList([table, block])
    data = [(fw.randint(0, 7, (2, n)),) for n in (4, 4, 3, 4)]
    optimizer = fw.optim.AdamW(model.parameters())
    return trainer(compile, model, optimizer, lambda i: block(table(i)).square().mean(), data)


@program
def sparse_embeddings(compile):
    table = nn.Embedding(7, 3, sparse=True)
    optimizer = fw.optim.SGD(table.parameters(), lr=0.1)

    @compile
    def step(i):
        optimizer.zero_grad()
        table(i).square().sum().backward()
        optimizer.step()
        return table.weight.grad.to_dense()
    return [step(fw.tensor(i)) for i in ([1, 2], [1, 1], [3])], table.weight


@program
def a_cache_that_grows(compile):
    project, cache = nn.Linear(4, 12), []

    @compile
    def step(x):
        q, k, v = project(x).chunk(3, -1)
        cache.append((k, v))
        keys, values = fw.cat([k for k, _ in cache], 1), fw.cat([v for _, v in cache], 1)
        y = F.scaled_dot_product_attention(q, keys, values)
        return y
    with fw.no_grad():
        return [step(fw.randn(2, 1, 4)) for _ in range(4)], len(cache)


@program
def unused_and_partly_used(compile):
    w = fw.randn(4, requires_grad=True)
    unused = fw.randn(2, requires_grad=True)

    @compile
    def f(n):
        a, b = w.split(2)
        u = w.unbind()
        y = a.exp().sum() + (b.sin().sum() if n > 1 else 0) + (u[0] * u[3] if n > 2 else 0)
        y.backward()
        return w.grad.clone(), unused.grad
    return [f(n) for n in (1, 2, 3, 1, 2, 3, 3)]


@program
def indexing(compile):
    w = fw.randn(4, 3, requires_grad=True)

    @compile
    def f(i):
        y = w[i] + w[fw.tensor([0, 1])].sum() + w[w.detach() > 0].sum() + w[1:, None, ..., ::2].sum()
        y.sum().backward()
        return w.grad.clone()
    return [f(i) for i in (0, 1, -1, fw.tensor(2), 0)] + [caught(f, 9)]
