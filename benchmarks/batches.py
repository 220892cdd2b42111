"""Batches of different lengths and structures, beside PyTorch.

    python benchmarks/batches.py [--threads 2] [--text FILE] [--sentences 128] [--trees 256]

Medians of the times of forward and backward, the ways taking turns: an LSTM and attention over sentences
as long as those of a text (default: lengths drawn like those of English prose) without padding, with padding,
and one by one; a Tree-LSTM over random trees one by one and together. Memory is what a process of its own
grows by, at its largest, in two such steps.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)
WIDTH, HEADS = 128, 4


def lengths(text, count):
    """The numbers of words of sentences of a text."""
    if text is None:
        return np.clip(np.random.default_rng(0).gamma(2.5, 9.0, count), 2, 120).astype(int).tolist()
    parts = [s.split() for s in Path(text).read_text(encoding="utf-8").replace("\n", " ").split(" . ")]
    return [len(s) for s in parts if 2 <= len(s) <= 120][:count]


def lstm_ways(M, sizes, ours):
    """LSTM over sentences: name -> a step, forward and backward."""
    rnn = M.nn.utils.rnn
    layer = M.nn.LSTM(WIDTH, WIDTH, batch_first=True)
    data = [M.randn(n, WIDTH) for n in sizes]

    def ragged():
        if ours:
            return layer_of(M.nested.nested_tensor(data))
        return layer(rnn.pack_sequence(data, enforce_sorted=False))[0].data

    def layer_of(x):
        return M.nn.utils.ragged.recurrent(layer, x)[0].values()

    def padded():
        return layer(rnn.pad_sequence(data, batch_first=True))[0]

    def alone():
        return M.cat([layer(x[None])[0][0] for x in data])
    return {"no padding": ragged, "padded": padded, "one by one": alone}, layer


def attention_ways(M, sizes, ours):
    """Self-attention with projections over sentences."""
    F = M.nn.functional
    project, out = M.nn.Linear(WIDTH, 3 * WIDTH), M.nn.Linear(WIDTH, WIDTH)
    data = [M.randn(n, WIDTH) for n in sizes]
    mask = M.arange(max(sizes))[None] < M.tensor(sizes)[:, None]

    def ragged():
        x = M.nested.nested_tensor(data) if ours else M.nested.nested_tensor(data, layout=M.jagged)
        parts = [t.unflatten(-1, (HEADS, -1)) for t in project(x).chunk(3, -1)]
        if not ours:  # PyTorch's kernels for nested tensors want that
            parts = [t.contiguous() for t in parts]
        y = F.scaled_dot_product_attention(*[t.transpose(1, 2) for t in parts])
        return out(y.transpose(1, 2).flatten(-2)).values()

    def padded():
        x = M.nn.utils.rnn.pad_sequence(data, batch_first=True)
        q, k, v = [t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in project(x).chunk(3, -1)]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None])
        return out(y.transpose(1, 2).flatten(-2))

    def alone():
        found = []
        for x in data:
            q, k, v = [t.unflatten(-1, (HEADS, -1)).transpose(0, 1)[None] for t in project(x).chunk(3, -1)]
            found.append(out(F.scaled_dot_product_attention(q, k, v)[0].transpose(0, 1).flatten(-2)))
        return M.cat(found)
    return {"no padding": ragged, "padded": padded, "one by one": alone}, M.nn.ModuleList([project, out])


def tree_ways(M, count, ours):
    """A Tree-LSTM of the paper's width over random trees of 5 to 35 leaves."""
    rng = random.Random(0)

    def tree(n):
        if n == 1:
            return M.tensor(rng.randrange(1000))
        k = rng.randrange(1, n)
        return tree(k), tree(n - k)

    class Tree(M.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.out = M.nn.Embedding(1000, 150), M.nn.Linear(150, 2)
            self.leaf, self.gates = M.nn.Linear(150, 450), M.nn.Linear(300, 750)

        def first(self, x):
            i, o, u = self.leaf(x).chunk(3, -1)
            c = i.sigmoid() * u.tanh()
            return o.sigmoid() * c.tanh(), c

        def join(self, left, right):
            (h, c), (k, d) = left, right
            i, o, f, g, u = self.gates(M.cat([h, k], -1)).chunk(5, -1)
            c = i.sigmoid() * u.tanh() + f.sigmoid() * c + g.sigmoid() * d
            return o.sigmoid() * c.tanh(), c

        def state(self, t):
            if isinstance(t, tuple):
                return self.join(self.state(t[0]), self.state(t[1]))
            return self.first(self.embed(t))

        def forward(self, example):
            return M.nn.functional.cross_entropy(self.out(self.state(example[0])[0])[None], example[1])

    model = Tree()
    trees = [(tree(rng.randint(5, 35)), M.tensor([rng.randrange(2)])) for _ in range(count)]
    ways = {"one by one": lambda: M.stack([model(t) for t in trees])}
    if ours:
        class Marked(Tree):
            first, join = M.batching.unit(Tree.first), M.batching.unit(Tree.join)
        marked = Marked()
        marked.load_state_dict(model.state_dict())
        ways["together"] = lambda: M.stack(M.batching.together(model, trees))
        ways["together, cells as units"] = lambda: M.stack(M.batching.together(marked, trees))
        return ways, M.nn.ModuleList([model, marked])
    return ways, model


KINDS = {"LSTM": lstm_ways, "attention": attention_ways, "Tree-LSTM": tree_ways}


def steps(kind, args, library):
    """name -> a whole step, for one of the libraries."""
    M = __import__(library)
    if library == "framework":
        M.batching, M.nested, M.set_num_threads(args.threads)  # loaded when named
    else:
        M.set_num_threads(args.threads)
    M.manual_seed(0)
    given = args.trees if kind == "Tree-LSTM" else lengths(args.text, args.sentences)
    ways, module = KINDS[kind](M, given, library == "framework")

    def step(way):
        for p in module.parameters():
            p.grad = None
        way().sum().backward()
    return {name: (lambda way=way: step(way)) for name, way in ways.items()}


def size(name):
    """A size of this process in kilobytes, as Linux tells it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])


def memory(args, kind, library, name):
    """Megabytes that a process of its own grows by."""
    command = [sys.executable, __file__, "--threads", str(args.threads), "--sentences", str(args.sentences),
               "--trees", str(args.trees), "--alone", f"{kind}|{library}|{name}"]
    done = subprocess.run(command + (["--text", args.text] if args.text else []), capture_output=True,
                          text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    return float(done.stdout.split()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--text")
    parser.add_argument("--sentences", type=int, default=128)
    parser.add_argument("--trees", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", choices=KINDS, help="one of the tables")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.alone:
        kind, library, name = args.alone.split("|")
        step = steps(kind, args, library)[name]
        Path("/proc/self/clear_refs").write_text("5")  # forget the largest size so far
        before = size("VmRSS")
        step(), step()
        print((size("VmHWM") - before) / 1024)
        return
    for kind in [args.only] if args.only else KINDS:
        table = {(library, name): step for library in ("framework", "torch")
                 for name, step in steps(kind, args, library).items()}
        times = {key: [] for key in table}
        for turn in range(args.repeats + 1):
            for key, step in table.items():
                start = time.perf_counter()
                step()
                if turn:
                    times[key].append(time.perf_counter() - start)
        print(f"\n| {kind} | time | memory |\n| --- | --- | --- |")
        for (library, name), found in times.items():
            shown = "PyTorch" if library == "torch" else library
            print(f"| {shown}, {name} | {statistics.median(found) * 1000:.1f} ms | "
                  f"{memory(args, kind, library, name):.0f} MB |", flush=True)


if __name__ == "__main__":
    main()
