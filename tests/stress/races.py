"""Native kernels called by many Python threads at once: for ``tests/stress/sanitize.sh thread``.

Each thread makes its own kind of calls, on operands that all of them share, and compares every result with
the one from before the threads began. Meanwhile others change the number of threads, empty the cache, write
into positions that are being read, and ask for the statistics; at the end long kernels are interrupted. Runs
without a sanitizer, too: ``python tests/stress/races.py [SECONDS]``.
"""

import ctypes
import itertools
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import framework as fw
import framework.nn.functional as F
from framework import _native, nn

native = _native.module
SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0


def trained(model, x):
    """What a step of a model changes, from the same start each time."""
    model.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    return [loss.detach(), *(p.grad for p in model.parameters())]


def stepped(kind, **options):
    def step(p, g):
        own = nn.Parameter(p.clone())
        optimizer = kind([own], lr=0.1, **options)
        for _ in range(2):
            own.grad = g.clone()
            optimizer.step()
        return [own.detach()]

    return step


def drawn(*functions):
    """Random numbers of a generator of the thread's own."""

    def draw():
        generator = fw.Generator()
        generator.manual_seed(5)
        return [function(generator) for function in functions]

    return draw


def grads(function, *operands):
    own = [t.clone().requires_grad_() for t in operands]
    out = function(*own)
    return [out.detach(), *fw.autograd.grad(out.sum(), own)]


def families():
    """{name: a function that gives tensors}: the same ones whenever it is called."""
    r = fw.Generator()
    r.manual_seed(1)
    m, wide, long = (fw.randn(*shape, generator=r) for shape in ((96, 96), (257, 300), (70000,)))
    images, kernels = fw.randn(3, 16, 20, 20, generator=r), fw.randn(16, 16, 3, 3, generator=r)
    heads = fw.randn(2, 3, 80, 16, generator=r)
    at = fw.randint(0, 257, (4000,), generator=r)
    mask = wide > 0
    lstm, gru = nn.LSTM(16, 24, 2), nn.GRU(16, 24)
    net = nn.Sequential(
        nn.Conv2d(16, 16, 3, padding=1),
        nn.BatchNorm2d(16, track_running_stats=False),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(1600, 9),
    )
    nets = [
        net,
        *(nn.Sequential(nn.Linear(96, 64), nn.LayerNorm(64), nn.Tanh(), nn.Linear(64, 3)) for _ in range(2)),
    ]
    classes = fw.randint(0, 300, (257,), generator=r)
    half = wide.to(fw.float16)
    program = fw.compile(lambda x: (x.exp() * 2 + x.tanh()).sum(1))
    quantized = fw.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(96, 64)).eval())
    return {
        "products": lambda: [m @ m, F.linear(m, m), fw.bmm(heads[0], heads[0].mT), wide.mv(wide[0])],
        "programs": lambda: [wide.exp() * 2 - wide.T.contiguous().T, long.sigmoid(), (wide + wide[0]).relu()],
        "reductions": lambda: [
            wide.sum(0),
            wide.mean(1),
            wide.var(),
            wide.amax(0),
            wide.argmax(1),
            long.sum(),
            half.sum(1),
            half.mean(0),
        ],
        "scans": lambda: [wide.cumsum(0), wide.cumsum(1), wide.cummax(1).values, wide.logcumsumexp(0)],
        "sorting": lambda: [
            *wide.sort(1),
            *wide.topk(7, 0),
            wide.median(),
            *wide.kthvalue(3, 1),
            fw.searchsorted(long.sort().values, wide),
        ],
        "convolutions": lambda: grads(lambda x, w: F.conv2d(x, w, padding=1), images, kernels),
        "pooling": lambda: grads(lambda x: F.max_pool2d(x, 2) + F.avg_pool2d(x, 2), images),
        "norms": lambda: [
            F.layer_norm(wide, (300,)),
            F.softmax(wide, 0),
            F.log_softmax(wide, 1),
            F.group_norm(images, 4),
            F.softmax(wide.T, 1),
        ],
        "attention": lambda: grads(F.scaled_dot_product_attention, heads, heads, heads),
        "recurrence": lambda: [
            lstm(images[0].reshape(20, 20, 16))[0].detach(),
            gru(images[1].reshape(20, 20, 16))[0].detach(),
        ],
        "positions": lambda: [
            wide[at],
            fw.gather(wide, 0, at[:300].reshape(1, 300)),
            wide[mask],
            wide.masked_fill(mask, 0.0),
            fw.zeros(257, 300).index_add(0, at, wide[at]),
            F.one_hot(at, 257),
            F.embedding(at, wide),
        ],
        "copies": lambda: [
            wide.T.contiguous(),
            images.flip(2),
            fw.cat([wide, wide]),
            wide.roll(3, 1),
            wide.double(),
            images.permute(0, 2, 3, 1).contiguous(),
            half.float(),
        ],
        "random": drawn(
            lambda g: fw.rand(30000, generator=g),
            lambda g: fw.randn(30000, generator=g),
            lambda g: fw.randint(0, 1000, (30000,), generator=g),
        ),
        "losses": lambda: grads(lambda x: F.cross_entropy(x, classes), wide),
        "Adam": lambda: stepped(fw.optim.Adam)(long, long.flip(0)),
        "SGD": lambda: stepped(fw.optim.SGD, momentum=0.9)(long, long.flip(0)),
        "compiled": lambda: [program(wide)],
        "8 bits": lambda: [quantized(m).detach()],
        **{f"training {i}": (lambda n=n: trained(n, images if n is net else m)) for i, n in enumerate(nets)},
    }


def same(a, b):
    return len(a) == len(b) and all(
        np.array_equal(x.numpy(), y.numpy(), equal_nan=True) for x, y in zip(a, b)
    )


def calls(name, function, wanted, until, wrong, counts):
    """Calls until the time is over; each number of threads has a result of its own, in `wanted`."""
    try:
        while time.monotonic() < until:
            got = function()
            if not any(same(got, one) for one in wanted):
                wrong.append(f"{name}: another result")
                return
            counts[name] = counts.get(name, 0) + 1
    except BaseException as error:
        wrong.append(f"{name}: {type(error).__name__}: {error}")


def changed_meanwhile(until, wrong):
    """Positions that another thread spoils: an error or a result, whichever it is."""
    at, x = np.zeros(20000, np.int64), fw.rand(20000, 8)
    positions = fw.from_numpy(at)

    def spoil():
        for number in itertools.cycle((2**62, 3, -(2**62), 0)):
            at[:] = number
            if time.monotonic() > until:
                return

    def there(place):
        if not 0 <= int(place) < len(at):
            wrong.append(f"positions: the place {int(place)} of {len(at)}")

    thread = threading.Thread(target=spoil)
    thread.start()
    while time.monotonic() < until:
        for call in (
            lambda: F.cross_entropy(x, positions),
            lambda: x[positions],
            lambda: F.one_hot(positions, 8),
            lambda: x.gather(0, positions.reshape(-1, 1)),
            lambda: F.embedding(positions, x[:9]),
            lambda: fw.bincount(positions, minlength=9),
            lambda: there(positions.argmin()),
            lambda: there(positions.max(0).indices),
        ):
            try:
                call()
            except (IndexError, ValueError, RuntimeError, MemoryError, OverflowError):
                pass
            except BaseException as error:
                wrong.append(f"positions: {type(error).__name__}: {error}")
    thread.join()


def changes(until):
    """The settings that anybody may change at any time."""
    for number in itertools.cycle((1, 2, 3)):
        fw.set_num_threads(number)
        native.empty_cache()
        native.memory_statistics()
        native.reset_peak()
        big = fw.rand(1 << 18)  # from the cache, and back
        del big
        native.set_cache_limit((1 << 20) * number)
        time.sleep(0.003)
        if time.monotonic() > until:
            return


def library_calls(until, wrong):
    """libframework in the same process, with a pool of its own."""
    path = Path(native.__file__).with_name("libframework.so")
    if not path.exists():
        return
    from test_library import view

    library = ctypes.CDLL(str(path))
    a = np.random.default_rng(0).standard_normal((150, 150), np.float32)
    wanted, out = a @ a, np.empty_like(a)
    for number in itertools.cycle((1, 2, 3)):
        library.fw_set_threads(number)
        if library.fw_matmul(view(a), view(a), view(out)) or not np.allclose(out, wanted, atol=1e-3):
            wrong.append("libframework: another product")
        if library.fw_softmax(view(a), 0, 0, view(out)):
            wrong.append("libframework: no softmax")
        if time.monotonic() > until:
            return


def interrupted(wrong):
    """Long kernels in the main thread end soon after Ctrl-C, while others go on."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that runs this beside it ignores it
    x = fw.rand(1, 1 << 10, 64)
    fw.set_num_threads(1)
    start = time.monotonic()
    F.scaled_dot_product_attention(x, x, x)
    took = time.monotonic() - start
    x = fw.rand(1, int((1 << 10) * max(1.0, (5 / took) ** 0.5)), 64)  # some five seconds, whatever watches
    others = [
        threading.Thread(target=lambda: [x[0, :64] @ x[0, :64].mT for _ in range(50)]) for _ in range(2)
    ]
    for t in others:
        t.start()
    for number in (1, 2):
        fw.set_num_threads(number)
        timer = threading.Timer(
            0.3, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        )
        timer.start()
        try:
            F.scaled_dot_product_attention(x, x, x)
            wrong.append(f"a long kernel of {number} threads was not interrupted")
        except KeyboardInterrupt:
            pass
        timer.join()
    for t in others:
        t.join()


def main():
    if native is None:
        return print(f"no native kernels here ({_native.isa})")
    wrong, counts = [], {}
    functions = families()
    wanted = {name: [] for name in functions}
    for number in (1, 2, 3):
        fw.set_num_threads(number)
        for name, function in functions.items():
            wanted[name].append(function())
    print(f"{native.__file__}: {len(functions)} families")
    until = time.monotonic() + SECONDS
    threads = [
        threading.Thread(target=calls, args=(name, function, wanted[name], until, wrong, counts))
        for name, function in functions.items()
    ]
    threads += [
        threading.Thread(target=function, args=arguments)
        for function, arguments in (
            (changed_meanwhile, (until, wrong)),
            (library_calls, (until, wrong)),
            (library_calls, (until, wrong)),
        )
    ]
    for thread in threads:
        thread.start()
    changes(until)
    for thread in threads:
        thread.join()
    interrupted(wrong)
    for text in wrong:
        print(text)
    print(
        f"races: {sum(counts.values())} calls in {len(threads)} threads, the fewest of "
        f"{min(counts, key=counts.get)} ({min(counts.values())}), {len(wrong)} wrong"
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
