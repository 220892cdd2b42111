"""Small research programs, written as one writes them for PyTorch, and what they must reach.

Each is a whole: a model, an optimizer, a loop. What it reaches is known beforehand: a closed form, a
loop in NumPy, a task that is only solved by learning it, or a run that was not interrupted.
"""

import math

import numpy as np
import pytest

import framework as fw
import framework.nn as nn
import framework.nn.functional as F
from framework.data import DataLoader, Dataset, Subset, WeightedRandomSampler, random_split


@pytest.fixture(autouse=True)
def seeded():
    fw.manual_seed(0)


# -- a convolutional network with residual blocks -------------------------------------------------


class Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, inner, outer, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Sequential()
        if stride != 1 or inner != outer:
            self.shortcut = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False),
                                          nn.BatchNorm2d(outer))

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return self.relu(out)


def bars(n):
    """Images with one bright bar among noise; the label tells lying, standing or slanting."""
    images, labels = fw.randn(n, 1, 8, 8) * 0.3, fw.randint(0, 3, (n,))
    for image, label in zip(images, labels.tolist()):
        at = int(fw.randint(0, 8, ()))
        for i in range(8):
            image[(0, *[(at, i), (i, at), (i, (i + at) % 8)][label])] += 1.5
    return images, labels


def test_residual_network_tells_bars_apart():
    model = nn.Sequential(Block(1, 6), Block(6, 12, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(12, 3))
    optimizer = fw.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
    scheduler = fw.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=60)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    for _ in range(60):
        x, y = bars(16)
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0, abs=1e-12)
    assert model[0].bn1.num_batches_tracked.item() == 60
    model.eval()
    x, y = bars(200)
    with fw.no_grad():
        correct = model(x).argmax(dim=1).eq(y).sum().item()
    assert correct > 190


# -- a transformer that copies ---------------------------------------------------------------------


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, t, c = x.size()
        q, k, v = (z.view(n, t, self.heads, c // self.heads).transpose(1, 2)
                   for z in self.qkv(x).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).contiguous().view(n, t, c))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln1, self.attention, self.ln2 = nn.LayerNorm(width), Attention(width, heads), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Model(nn.Module):
    def __init__(self, letters, length, width=32, heads=4, depth=1):
        super().__init__()
        self.tokens, self.places = nn.Embedding(letters, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList([Layer(width, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters, bias=False)
        self.head.weight = self.tokens.weight  # tied
        self.apply(self.start)

    @staticmethod
    def start(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=0.05)

    def forward(self, idx):
        x = self.tokens(idx) + self.places(fw.arange(idx.size(1)))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def test_transformer_learns_to_repeat_a_word():
    """The second half of each row repeats the first: only attention can tell what comes."""
    length, letters = 6, 8
    model = Model(letters, 2 * length)
    weights = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    assert len({id(p) for p in weights + others}) == len(list(model.parameters()))  # the tied one once
    optimizer = fw.optim.AdamW([{"params": weights, "weight_decay": 0.01},
                                {"params": others, "weight_decay": 0.0}], lr=5e-3, betas=(0.9, 0.95))
    scheduler = fw.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / 20))

    def rows(n):
        word = fw.randint(0, letters, (n, length))
        return fw.cat([word, word], dim=1)

    for _ in range(160):
        x = rows(24)
        logits = model(x[:, :-1])
        loss = F.cross_entropy(logits[:, length - 1:].reshape(-1, letters), x[:, length:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        assert math.isfinite(norm)
        optimizer.step()
        scheduler.step()
    assert model.head.weight is model.tokens.weight
    model.eval()
    x = rows(50)
    with fw.no_grad():
        written = x[:, :length]
        for _ in range(length):  # letter by letter, as text is sampled
            probability = F.softmax(model(written)[:, -1], dim=-1)
            written = fw.cat([written, fw.multinomial(probability ** 4, num_samples=1)], dim=1)
    assert (written == x).float().mean() > 0.9
    # nothing looks ahead: what follows does not change what was said before
    other = x.clone()
    other[:, 4:] = 0
    assert fw.allclose(model(x)[:, :4], model(other)[:, :4], atol=1e-5)


# -- messages along the edges of a graph -----------------------------------------------------------


class GraphConv(nn.Module):
    """The rows of ``x`` mixed along the edges, each weighted with 1 / sqrt(degree * degree)."""

    def __init__(self, inner, outer):
        super().__init__()
        self.linear, self.bias = nn.Linear(inner, outer, bias=False), nn.Parameter(fw.zeros(outer))

    def forward(self, x, edges):
        source, target = fw.cat([edges, fw.arange(len(x)).repeat(2, 1)], dim=1)
        degree = fw.zeros(len(x)).scatter_add_(0, target, fw.ones(len(target)))
        scale = degree.pow(-0.5)
        messages = self.linear(x)[source] * (scale[source] * scale[target]).unsqueeze(1)
        return fw.zeros(len(x), messages.size(1)).index_add_(0, target, messages) + self.bias


def test_graph_network_equals_numpy_and_learns_two_groups():
    random = np.random.default_rng(0)
    groups = np.arange(40) % 2
    chance = np.where(groups[:, None] == groups, 0.3, 0.02)
    joined = np.triu(random.random((40, 40)) < chance, 1)
    joined = joined | joined.T
    edges = fw.tensor(np.stack(np.nonzero(joined)))
    x, y = fw.eye(40), fw.tensor(groups)

    layer = GraphConv(40, 5)
    around = (joined + np.eye(40)) / np.sqrt(np.outer(*[joined.sum(1) + 1] * 2))
    wanted = around @ x.numpy() @ layer.linear.weight.detach().numpy().T
    assert np.allclose(layer(x, edges).detach().numpy(), wanted, atol=1e-6)

    first, second = GraphConv(40, 16), GraphConv(16, 2)
    optimizer = fw.optim.Adam([*first.parameters(), *second.parameters()], lr=0.02, weight_decay=5e-4)
    known = fw.tensor(groups >= 0)
    known[4:] = False  # four labels are given, the graph tells the rest
    for _ in range(60):
        out = second(F.relu(first(x, edges)), edges)
        loss = F.cross_entropy(out[known], y[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert (out.argmax(dim=1)[~known] == y[~known]).float().mean() > 0.85


# -- gradients inside the loss ---------------------------------------------------------------------


def test_gradient_penalty_has_the_closed_form():
    """For a linear critic the penalty is (|w| - 1)^2, and its gradient 2 (|w| - 1) w / |w|."""
    critic = nn.Linear(3, 1)
    real, fake = fw.randn(8, 3), fw.randn(8, 3)
    mix = fw.rand(8, 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    score = critic(between)
    slope, = fw.autograd.grad(outputs=score, inputs=between, grad_outputs=fw.ones_like(score),
                              create_graph=True, retain_graph=True)
    penalty = ((slope.norm(2, dim=1) - 1) ** 2).mean()
    penalty.backward()
    w = critic.weight.detach().numpy()
    size = np.sqrt((w ** 2).sum())
    assert penalty.item() == pytest.approx((size - 1) ** 2, rel=1e-5)
    assert np.allclose(critic.weight.grad.numpy(), 2 * (size - 1) * w / size, rtol=1e-4)
    assert critic.bias.grad is None or not critic.bias.grad.any()


def test_adversaries_learn_where_the_data_lies():
    """WGAN-GP with two optimizers: what the generator makes moves from 0 to the mean of the data."""
    make = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 2))
    judge = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    make_step = fw.optim.Adam(make.parameters(), lr=5e-3, betas=(0.5, 0.9))
    judge_step = fw.optim.Adam(judge.parameters(), lr=1e-2, betas=(0.5, 0.9))
    mean = fw.tensor([2.0, -1.0])
    for i in range(500):
        real, fake = mean + 0.3 * fw.randn(32, 2), make(fw.randn(32, 2))
        mix = fw.rand(32, 1)
        between = (mix * real + (1 - mix) * fake.detach()).requires_grad_()
        slope, = fw.autograd.grad(judge(between).sum(), between, create_graph=True)
        loss = judge(fake.detach()).mean() - judge(real).mean() + (slope.norm(dim=1) - 1).square().mean()
        judge_step.zero_grad()
        loss.backward()
        judge_step.step()
        if i % 2:
            make_step.zero_grad()
            (-judge(fake).mean()).backward()
            make_step.step()
    with fw.no_grad():
        made = make(fw.randn(500, 2)).mean(dim=0)
    assert (made - mean).abs().max() < 0.5


def test_learning_to_learn():
    """The gradient through an inner step of learning y = a x, and the start that serves two tasks."""
    w = fw.tensor(0.3, dtype=fw.float64, requires_grad=True)
    x = fw.tensor([1.0, 2.0], dtype=fw.float64)
    rate, a = 0.05, 2.0
    inner = ((w * x - a * x) ** 2).mean()
    g, = fw.autograd.grad(inner, w, create_graph=True)
    outer = (((w - rate * g) * x - a * x) ** 2).mean()
    outer.backward()
    kept = 1 - 2 * rate * 2.5  # the error after the step is `kept` times the error before; mean(x^2) = 2.5
    assert outer.item() == pytest.approx(2.5 * (kept * (0.3 - a)) ** 2)
    assert w.grad.item() == pytest.approx(2 * 2.5 * kept ** 2 * (0.3 - a))

    params = list(nn.Linear(1, 1).parameters())
    meta = fw.optim.Adam(params, lr=0.05)
    for _ in range(150):
        total = fw.zeros(())
        for slope in (1.0, 3.0):
            x = fw.randn(10, 1)
            y = slope * x + 1
            fast = params
            for _ in range(2):
                loss = F.mse_loss(F.linear(x, *fast), y)
                fast = [p - 0.1 * g for p, g in zip(fast, fw.autograd.grad(loss, fast, create_graph=True))]
            total = total + F.mse_loss(F.linear(x, *fast), y)
        meta.zero_grad()
        total.backward()
        meta.step()
    weight, bias = (p.item() for p in params)
    assert weight == pytest.approx(2, abs=0.3) and bias == pytest.approx(1, abs=0.3)  # between the tasks


# -- latent variables, and a policy ----------------------------------------------------------------


def test_variational_autoencoder_finds_the_line():
    """Data along one direction: one latent number is used and carries it."""
    encode, decode = nn.Linear(4, 4), nn.Linear(2, 4)
    optimizer = fw.optim.Adam([*encode.parameters(), *decode.parameters()], lr=0.02)
    way = fw.tensor([1.0, -1.0, 0.5, 2.0])
    for _ in range(300):
        x = fw.randn(64, 1) * way
        mean, log_var = encode(x).chunk(2, dim=1)
        z = mean + fw.exp(0.5 * log_var) * fw.randn_like(mean)
        likelihood = ((decode(z) - x) ** 2).sum(dim=1).mean() / (2 * 0.1)
        divergence = -0.5 * (1 + log_var - mean.pow(2) - log_var.exp()).sum(dim=1).mean()
        optimizer.zero_grad()
        (likelihood + divergence).backward()
        optimizer.step()
    x = fw.randn(200, 1) * way
    with fw.no_grad():
        mean = encode(x)[:, :2]
        error = ((decode(mean) - x) ** 2).mean() / (x ** 2).mean()
    assert error < 0.05
    used = mean.std(dim=0).sort().values
    assert used[1] > 0.8  # one latent number spreads like its prior
    normal = fw.tensor([[0.5, -0.2]])
    kl = -0.5 * (1 + normal - normal.exp()).sum()
    assert kl.item() == pytest.approx(0.5 * sum(math.exp(v) - 1 - v for v in (0.5, -0.2)), rel=1e-5)


def test_policy_gradient_finds_the_rewarded_action():
    """REINFORCE by hand: the action that pays is the sign of the first input."""
    policy = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
    optimizer = fw.optim.Adam(policy.parameters(), lr=0.02)
    for _ in range(80):
        state = fw.randn(64, 2)
        log_p = F.log_softmax(policy(state), dim=-1)
        action = fw.multinomial(log_p.detach().exp(), 1)
        reward = (action.squeeze(1) == (state[:, 0] > 0).long()).float()
        advantage = (reward - reward.mean()) / (reward.std() + 1e-6)
        loss = -(log_p.gather(1, action).squeeze(1) * advantage).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert reward.mean() > 0.85


# -- a recurrent cell of one's own, data of several lengths, a resumed run ----------------------------


class Cell(nn.Module):
    def __init__(self, inner, hidden):
        super().__init__()
        self.w_x = nn.Parameter(fw.empty(4 * hidden, inner))
        self.w_h = nn.Parameter(fw.empty(4 * hidden, hidden))
        self.bias = nn.Parameter(fw.zeros(4 * hidden))
        nn.init.xavier_uniform_(self.w_x)
        nn.init.orthogonal_(self.w_h)

    def forward(self, x, state):
        h, c = state
        i, f, g, o = (x @ self.w_x.t() + h @ self.w_h.t() + self.bias).chunk(4, dim=1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


def test_cell_equals_numpy():
    cell = Cell(3, 5)
    x, h, c = fw.randn(2, 3), fw.randn(2, 5), fw.randn(2, 5)
    gates = x.numpy() @ cell.w_x.detach().numpy().T + h.numpy() @ cell.w_h.detach().numpy().T
    i, f, g, o = np.split(gates, 4, axis=1)
    s = lambda v: 1 / (1 + np.exp(-v))
    new_c = s(f) * c.numpy() + s(i) * np.tanh(g)
    for ours, wanted in zip(cell(x, (h, c)), (s(o) * np.tanh(new_c), new_c)):
        assert np.allclose(ours.detach().numpy(), wanted, atol=1e-6)


class LastBits(Dataset):
    """Rows of bits of different lengths; the label is the last bit."""

    def __init__(self, n):
        self.rows = [fw.randint(0, 2, (int(fw.randint(2, 7, ())),)) for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], int(self.rows[i][-1])


def padded(batch):
    rows, labels = zip(*batch)
    lengths = fw.tensor([len(r) for r in rows])
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1), lengths, fw.tensor(labels)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.drop, self.out = Cell(1, 12), nn.Dropout(0.1), nn.Linear(12, 2)

    def forward(self, x, lengths):
        h = c = x.new_zeros(len(x), 12, dtype=fw.float32)
        for t in range(x.size(1)):
            new_h, new_c = self.cell(x[:, t:t + 1].float(), (h, c))
            going = (t < lengths).unsqueeze(1)
            h, c = fw.where(going, new_h, h), fw.where(going, new_c, c)
        return self.out(self.drop(h))


def start(train):
    fw.manual_seed(1)
    model = Tagger()
    optimizer = fw.optim.Adam(model.parameters(), lr=0.02, amsgrad=True)
    scheduler = fw.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.03, total_steps=108)
    weights = [1.0 + 0.5 * label for _, label in train]
    loader = DataLoader(train, batch_size=16, sampler=WeightedRandomSampler(weights, 96), collate_fn=padded)
    return model, optimizer, scheduler, loader


def epochs(n, model, optimizer, scheduler, loader):
    losses = []
    for _ in range(n):
        for x, lengths, y in loader:
            loss = F.cross_entropy(model(x, lengths), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
    return losses


def test_resumed_run_equals_the_whole(tmp_path):
    train, held_out = random_split(LastBits(160), [0.8, 0.2], generator=fw.Generator().manual_seed(3))
    assert isinstance(train, Subset) and (len(train), len(held_out)) == (128, 32)
    whole = start(train)
    losses = epochs(18, *whole)

    parts = start(train)
    first = epochs(7, *parts)
    path = tmp_path / "checkpoint.pt"
    fw.save({**{k: part.state_dict() for k, part in zip("mosl", parts)}, "losses": first,
             "random": fw.get_rng_state()}, path)
    parts = start(train)
    fw.manual_seed(99)
    state = fw.load(path)
    for part, key in zip(parts, "mosl"):
        part.load_state_dict(state[key])
    fw.set_rng_state(state["random"])
    assert state["losses"] + epochs(11, *parts) == losses
    for (name, a), b in zip(whole[0].state_dict().items(), parts[0].state_dict().values()):
        assert fw.equal(a, b), name

    x, lengths, y = padded([held_out[i] for i in range(len(held_out))])
    model = parts[0].eval()
    assert (model(x, lengths).argmax(dim=1) == y).float().mean() > 0.9


# -- second-order optimization, and a rule of one's own ----------------------------------------------


def test_lbfgs_solves_least_squares():
    random = np.random.default_rng(0)
    x, noise = random.standard_normal((40, 5)), random.standard_normal(40)
    y = x @ np.arange(5.0) + 1 + 0.1 * noise
    model = nn.Linear(5, 1).double()
    optimizer = fw.optim.LBFGS(model.parameters(), max_iter=50, line_search_fn="strong_wolfe")
    inputs, targets = fw.from_numpy(x), fw.from_numpy(y)

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(model(inputs).squeeze(-1), targets)
        loss.backward()
        return loss

    optimizer.step(closure)
    wanted = np.linalg.lstsq(np.column_stack([x, np.ones(40)]), y, rcond=None)[0]
    found = nn.utils.parameters_to_vector(model.parameters()).detach().numpy()
    assert np.allclose(found, wanted, atol=1e-5)


class Sign(fw.autograd.Function):
    """sign(x) whose gradient passes straight through where |x| <= 1."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * (x.abs() <= 1).to(g.dtype)


def test_straight_through_gradient_trains_binary_weights():
    hidden = fw.tensor([1.0, -1.0, -1.0, 1.0])
    w = nn.Parameter(fw.tensor([-0.1, 0.1, -0.1, 0.1]))
    optimizer = fw.optim.RMSprop([w], lr=0.02)
    for _ in range(100):
        x = fw.randn(16, 4)
        loss = F.smooth_l1_loss(x @ Sign.apply(w), x @ hidden)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert Sign.apply(w).tolist() == hidden.tolist()
    assert loss.item() == 0
    outside = fw.tensor([0.5, 2.0], requires_grad=True)
    Sign.apply(outside).sum().backward()
    assert outside.grad.tolist() == [1, 0]
