"""Training steps as programs have them, each with things that look at values on the CPU: losses, layers,
optimizers, masks, distributions, lengths. ``STEPS`` names functions that make a step, which is called over
and over.
"""

import numpy as np

import framework as fw
from framework import nn
from framework.utils.checkpoint import checkpoint

F = nn.functional
STEPS = {}


def real(*shape, **options):
    return fw.tensor(np.random.default_rng(0).standard_normal(shape).astype("f"), device="cuda", **options)


def whole(high, *shape, low=0):
    return fw.tensor(np.random.default_rng(0).integers(low, high, shape), device="cuda")


def classes():
    return whole(5, 4)


def sgd(params):
    return fw.optim.SGD(params, lr=0.1)


def training(model, loss, optimizer=sgd, after=lambda model: None):
    """A step of a model by a loss of it; after: what is done with its gradients."""
    model = model.cuda()
    made = optimizer(list(model.parameters()))

    def step():
        made.zero_grad()
        loss(model).backward()
        after(model)
        made.step()

    return step


def _outputs(loss):
    x = real(4, 6)
    return training(nn.Linear(6, 5), lambda m: loss(m(x)))


def _leaf(loss, shape):
    leaf = real(*shape).requires_grad_()

    def step():
        leaf.grad = None
        loss(leaf).backward()

    return step


def add(many, make):
    """Steps by name, which ``make`` makes of what stands beside the name."""
    STEPS.update({name: lambda given=given: make(given) for name, given in many.items()})


def _ctc(z, lengths, sizes):
    steps = z.log_softmax(1).reshape(4, 1, 5).expand(4, 2, 5)
    return F.ctc_loss(steps, whole(5, 2, 2, low=1), lengths, sizes)


def there(values):
    return fw.tensor(values, device="cuda")


add({
    "cross entropy": lambda z: F.cross_entropy(
        z, classes(), weight=real(5).abs(), ignore_index=2, label_smoothing=0.1),
    "cross entropy of probabilities": lambda z: F.cross_entropy(z, real(4, 5).softmax(1)),
    "nll_loss": lambda z: F.nll_loss(z.log_softmax(1), classes(), ignore_index=1),
    "binary cross entropy": lambda z: F.binary_cross_entropy(z.sigmoid(), real(4, 5).sigmoid()),
    "binary cross entropy of logits": lambda z: F.binary_cross_entropy_with_logits(
        z, real(4, 5).sigmoid(), pos_weight=real(5).abs()),
    **{name: lambda z, name=name: getattr(F, name)(z, real(4, 5).abs()) for name in (
        "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss",
        "soft_margin_loss", "multilabel_soft_margin_loss")},
    "gaussian_nll_loss": lambda z: F.gaussian_nll_loss(z, real(4, 5), z.exp()),
    "hinge_embedding_loss": lambda z: F.hinge_embedding_loss(z, real(4, 5).sign()),
    "margin_ranking_loss": lambda z: F.margin_ranking_loss(z, z * 2, real(4, 5).sign()),
    "cosine_embedding_loss": lambda z: F.cosine_embedding_loss(z, real(4, 5), real(4).sign()),
    "triplet_margin_loss": lambda z: F.triplet_margin_loss(z, real(4, 5), z * 2),
    "multi_margin_loss": lambda z: F.multi_margin_loss(z, classes()),
    "multilabel_margin_loss": lambda z: F.multilabel_margin_loss(z, whole(5, 4, 5, low=-1)),
    "ctc_loss": lambda z: _ctc(z, there([4, 3]), there([2, 1])),
    "ctc_loss, lengths of the host": lambda z: _ctc(z, (4, 3), (2, 1)),
    "gumbel_softmax": lambda z: F.gumbel_softmax(z, hard=True).sum(),
    "kinds of dropout": lambda z: F.alpha_dropout(z, 0.2, True).sum() + F.dropout1d(z, 0.2, True).sum()
    + F.feature_alpha_dropout(z[..., None], 0.2, True).sum(),
    "rrelu": lambda z: F.rrelu(z, training=True).sum(),
    "norms and distances": lambda z: F.normalize(z).sum() + F.cosine_similarity(z, z * 2).sum()
    + fw.cdist(z, z + 1).sum() + z.norm() + fw.linalg.vector_norm(z, 1),
    "einsum and bmm": lambda z: fw.einsum("ij,kj->ik", z, z).sum() + fw.bmm(z[None], z.T[None]).sum(),
    "two losses": lambda z: F.cross_entropy(z, classes()) / 2 + F.cross_entropy(z, classes()) / 2,
    "of a variational encoder": lambda z: fw.distributions.kl_divergence(
        fw.distributions.Normal(z, z.exp()), fw.distributions.Normal(0.0, 1.0)).sum()
    + fw.distributions.Normal(z, z.exp()).rsample().sum(),
    "of a policy": lambda z: _policy(fw.distributions.Categorical(logits=z)),
}, _outputs)


def _policy(actions):
    return -(actions.log_prob(actions.sample()) * real(4)).mean() - actions.entropy().mean()


def _written(x):
    x[x > 1] = 0.0
    x[:, 1:3].mul_(2)
    x[0].zero_()
    return x.sum()


def _chosen(x):
    parts = (
        x[whole(4, 3)], fw.where(x > 0, x, 0.0), x.gather(1, whole(6, 4, 2)), x.topk(2).values, x.cumsum(1),
        x.sort(1).values, x[:, None, 1:3], x.take_along_dim(x.argsort(1), 1))
    return sum(p.sum() for p in parts)


def _put(x):
    kept = x > 0
    zeros = fw.zeros(4, 6, device="cuda")
    return zeros[:3].index_add(0, whole(3, 4), x).sum() + x.masked_fill(x > 1, 0.0).sum() + zeros.scatter_add(
        1, whole(6, 4, 6), x).sum() + (x * kept).sum() / kept.sum().clamp(min=1) + zeros.index_put(
            (whole(4, 4), whole(6, 4)), x[:, 0], accumulate=True).sum()


def _drawn(x):
    held = x.detach()
    return (x * fw.bernoulli(held.sigmoid())).sum() + x[fw.randperm(4, device="cuda")].sum() \
        + x[:, fw.multinomial(held[0].softmax(0), 2)].sum() + (x * fw.rand_like(x)).sum() \
        + x[fw.randint(0, 4, (3,), device="cuda")].sum()


def _solved(x):
    a = x @ x.T + fw.eye(4, device="cuda")
    return fw.linalg.solve(a, real(4, 2)).sum() + fw.linalg.cholesky(a).sum() + fw.linalg.inv(a).sum() \
        + fw.linalg.slogdet(a)[1]


def _rotated(x):
    turned = fw.polar(fw.ones(4, 3, device="cuda"), fw.arange(12.0, device="cuda").reshape(4, 3))
    return fw.view_as_real(fw.view_as_complex(x.reshape(4, 3, 2)) * turned).sum()


ROWS = {
    "elements that are chosen": _chosen,
    "elements that are put": _put,
    "elements that are written": lambda x: _written(x * 1),
    "norms of rows": lambda x: F.layer_norm(x, (6,)).sum() + F.rms_norm(x, (6,)).sum()
    + F.group_norm(x[..., None], 2).sum() + F.instance_norm(x[..., None].expand(4, 6, 3)).sum(),
    "reductions": lambda x: x.prod(1).sum() + x.cumprod(1).sum() + x.median() + x.quantile(0.5)
    + x.logsumexp(1).sum() + x.std() + x.amax() + x.max(1).values.sum(),
    "complex numbers": _rotated,
    "spectra": lambda x: fw.fft.rfft(x).abs().mean() + fw.stft(
        x.reshape(-1), 8, window=fw.hann_window(8, device="cuda"), return_complex=True).abs().mean(),
    "joined and split": lambda x: x.repeat_interleave(2, 0).sum() + fw.stack([x, x]).sum()
    + sum(p.sum() for p in x.split(2, 1)),
    "repeats of a tensor": lambda x: x.repeat_interleave(there([1, 2, 1, 0]), 0, output_size=4).sum(),
    "one_hot": lambda x: (x * F.one_hot(whole(6, 4), 6)).sum(),
    "nan": lambda x: fw.nan_to_num(x).sum() * x.isfinite().all(),
    "random numbers": _drawn,
    "linear algebra": _solved,
    "normal of several": lambda x: -fw.distributions.MultivariateNormal(
        x[0, :4], fw.eye(4, device="cuda")).log_prob(real(3, 4)).mean(),
    "gamma's family": lambda x: fw.distributions.Dirichlet(x.exp()).rsample().sum()
    + fw.distributions.Beta(x.exp(), x.exp()).rsample().sum(),
}
add(ROWS, lambda loss: _leaf(loss, (4, 6)))
IMAGES = {
    "pooling and its inverse": lambda x: F.max_unpool2d(
        *F.max_pool2d(x[..., :4, :4], 2, return_indices=True), 2).sum(),
    "adaptive pooling": lambda x: F.adaptive_max_pool2d(x, (2, 3)).sum() + F.adaptive_avg_pool2d(x, 3).sum(),
    "interpolation": lambda x: sum(F.interpolate(x, size=(7, 9), mode=m).sum()
                                   for m in ("nearest", "bilinear", "bicubic", "area")),
    "samples of a grid": lambda x: F.grid_sample(x, F.affine_grid(
        real(1, 2, 3), (1, 2, 5, 7), align_corners=False), align_corners=False).sum(),
    "windows": lambda x: F.fold(F.unfold(x, 2), (5, 7), 2).sum()
    + F.conv_transpose2d(x, real(2, 3, 2, 2)).sum(),
    "padding": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect").sum() + x.roll(1, 2).sum() + F.pixel_shuffle(
        F.pad(x, (0, 1), value=1.0)[:, :, :4, :8].reshape(1, 8, 2, 4), 2).sum(),
}
add(IMAGES, lambda loss: _leaf(loss, (1, 2, 5, 7)))
add({"attention": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True, dropout_p=0.1).sum()},
    lambda loss: _leaf(loss, (1, 2, 4, 6)))


def _packed(m, **options):
    lengths = fw.tensor([2, 4, 1]) if options else [4, 2, 1]
    packed = nn.utils.rnn.pack_padded_sequence(real(4, 3, 6), lengths, **options)
    return nn.utils.rnn.pad_packed_sequence(m(packed)[0])[0].sum()


def _masked(m):
    x, shut = real(2, 4, 6), there([[False] * 4, [False] * 3 + [True]])
    ahead = fw.ones(4, 4, dtype=fw.bool, device="cuda").triu(1)
    return m(x, x, x, key_padding_mask=shut, attn_mask=ahead, need_weights=False)[0].sum()


def _translated(m):
    mask = nn.Transformer.generate_square_subsequent_mask(3, device="cuda")
    shut = there([[False] * 4, [False] * 3 + [True]])
    return m(real(4, 2, 6), real(3, 2, 6), tgt_mask=mask, src_key_padding_mask=shut).sum()


def _cell(m):
    h, c = real(3, 5), real(3, 5)
    for _ in range(2):
        h, c = m(real(3, 6), (h, c))
    return h.sum()


def _penalty(m):
    x = real(4, 6, requires_grad=True)
    slope = fw.autograd.grad(m(x).tanh().sum(), x, create_graph=True)[0]
    return ((slope.norm(2, 1) - 1) ** 2).mean()


def _in_bfloat16(m):
    with fw.autocast("cuda", dtype=fw.bfloat16):
        out = m(real(2, 4, 6)).float()
    return F.mse_loss(out, real(2, 4, 6))


def _convolutions():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.3),
                         nn.Flatten(), nn.Linear(36, 5))


def _dropping():
    return nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.1), nn.ReLU())


def _again(reentrant):
    return lambda m: checkpoint(m, real(4, 6, requires_grad=True), use_reentrant=reentrant).sum()


WEIGHTS = nn.utils.parametrizations
LAYERS = {
    "embedding": (lambda: nn.Embedding(9, 4, padding_idx=0), lambda m: m(whole(9, 3, 5)).sum()),
    "bags": (lambda: nn.EmbeddingBag(9, 4, mode="mean"), lambda m: m(whole(9, 3, 5)).sum()),
    "sparse embedding": (lambda: nn.Embedding(9, 4, sparse=True), lambda m: m(whole(9, 3, 5)).sum()),
    "adaptive softmax": (lambda: nn.AdaptiveLogSoftmaxWithLoss(6, 10, [3, 6]),
                         lambda m: m(real(4, 6), whole(10, 4)).loss),
    "convolutions": (_convolutions, lambda m: F.cross_entropy(m(real(4, 3, 8, 8)), classes())),
    "masked attention": (lambda: nn.MultiheadAttention(6, 2, dropout=0.1, batch_first=True), _masked),
    "transformer": (lambda: nn.Transformer(6, 2, 1, 1, 12), _translated),
    "transformer in bfloat16": (lambda: nn.TransformerEncoderLayer(6, 2, 12, batch_first=True), _in_bfloat16),
    **{f"{cls.__name__} of lengths": (
        lambda cls=cls: cls(6, 5, 2, bidirectional=True, dropout=0.1), _packed)
        for cls in (nn.LSTM, nn.GRU, nn.RNN)},
    "LSTM of lengths in any order": (lambda: nn.LSTM(6, 5), lambda m: _packed(m, enforce_sorted=False)),
    "LSTM": (lambda: nn.LSTM(6, 5, 2), lambda m: m(real(4, 3, 6))[0].sum()),
    "LSTMCell": (lambda: nn.LSTMCell(6, 5), _cell),
    "checkpoint": (_dropping, _again(False)),
    "checkpoint, reentrant": (_dropping, _again(True)),
    "spectral_norm": (lambda: nn.utils.spectral_norm(nn.Linear(6, 5)), lambda m: m(real(4, 6)).sum()),
    "spectral norm": (lambda: WEIGHTS.spectral_norm(nn.Linear(6, 5)), lambda m: m(real(4, 6)).sum()),
    "weight norm": (lambda: WEIGHTS.weight_norm(nn.Linear(6, 5)), lambda m: m(real(4, 6)).sum()),
    "orthogonal weights": (lambda: WEIGHTS.orthogonal(nn.Linear(6, 6)), lambda m: m(real(4, 6)).sum()),
    "penalty of gradients": (lambda: nn.Linear(6, 1), _penalty),
    "batch norm by the plain mean": (lambda: nn.BatchNorm1d(6, momentum=None), lambda m: m(real(4, 6)).sum()),
    "pinned batch": (lambda: nn.Linear(6, 5),
                     lambda m: m(fw.ones(4, 6).pin_memory().to("cuda", non_blocking=True)).sum()),
    "batch": (lambda: nn.Linear(6, 5), lambda m: m(fw.ones(4, 6).cuda()).sum()),
}
add(LAYERS, lambda pair: training(pair[0](), pair[1]))


def _classified(m):
    return F.cross_entropy(m(real(4, 6)), classes())


add({
    **{name: lambda p, name=name: getattr(fw.optim, name)(p) for name in (
        "SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "Adagrad", "Adadelta", "ASGD",
        "Adafactor", "Lion")},
}, lambda make: training(nn.Linear(6, 5), _classified, make,
                         lambda m: nn.utils.clip_grad_norm_(m.parameters(), 1.0)))
add({"Muon": fw.optim.Muon}, lambda make: training(nn.Linear(6, 5, bias=False), _classified, make))
add({"SparseAdam": fw.optim.SparseAdam}, lambda make: training(
    nn.Embedding(9, 4, sparse=True), lambda m: m(whole(9, 3, 5)).sum(), make))
add({
    "limits of gradients": lambda m: nn.utils.clip_grad_value_(m.parameters(), 0.1),
    "greatest gradient": lambda m: nn.utils.clip_grad_norm_(m.parameters(), 0.1, norm_type=float("inf")),
    "sum of gradients": lambda m: nn.utils.clip_grad_norm_(m.parameters(), 0.1, norm_type=1, foreach=False),
}, lambda after: training(nn.Linear(6, 5), _classified, after=after))


def _averaged(mean):
    model = nn.Linear(6, 5).cuda()
    average = fw.optim.swa_utils.AveragedModel(model, multi_avg_fn=mean)
    return training(model, _classified, after=average.update_parameters)


def _scheduled(make):
    model, made = nn.Linear(6, 5), []

    def optimizer(params):
        made.append(fw.optim.SGD(params, lr=0.1, momentum=0.9))
        made.append(make(made[0]))
        return made[0]

    step = training(model, _classified, optimizer)
    return lambda: (step(), made[1].step())


add({"mean of models": None, "falling mean of models": fw.optim.swa_utils.get_ema_multi_avg_fn(0.99)},
    _averaged)
add({
    "cosine of rates": lambda o: fw.optim.lr_scheduler.CosineAnnealingLR(o, 10),
    "one cycle of rates": lambda o: fw.optim.lr_scheduler.OneCycleLR(o, 1.0, total_steps=99),
}, _scheduled)


def _scaled(_):
    model = nn.Linear(6, 5).cuda()
    optimizer, scaler = fw.optim.Adam(model.parameters()), fw.amp.GradScaler("cuda")

    def step():
        optimizer.zero_grad()
        with fw.autocast("cuda", dtype=fw.float16):
            loss = _classified(model)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    return step


add({"scaled losses": None}, _scaled)
