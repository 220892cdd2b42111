"""Three kinds of inputs of all shapes, each model written for ONE of them and run for many by ``together``.

A recursive network says whether an expression of "and", "or" and "not" is true, an LSTM cell whether a
sequence of any length has more ones than zeros, a message-passing network whether a graph has a triangle.
``batching.together`` calls the model once per example, puts its operations off, and runs those of one kind
and shape as one call, forward and backward, whatever the order in which they came. At the end stand the times
of forward and backward, together and one by one: the more each operation computes, the more is saved (these
graphs, whose nodes only add, lose).
"""

import argparse
import random
import time

from tqdm import tqdm

import framework as fw
from framework import nn
from framework.batching import together


def expression(rng, depth):
    """(nested tuples, whether it is true)."""
    kind = rng.choice(["leaf", "not", "and", "or"] if depth else ["leaf"])
    if kind == "leaf":
        value = rng.random() < 0.5
        return value, value
    parts = [expression(rng, depth - 1) for _ in range(1 if kind == "not" else 2)]
    truths = [truth for _, truth in parts]
    truth = not truths[0] if kind == "not" else all(truths) if kind == "and" else any(truths)
    return (kind, *[tree for tree, _ in parts]), truth


def sequence(rng, size):
    bits = [rng.randrange(2) for _ in range(2 * rng.randint(1, size) + 1)]
    return bits, 2 * sum(bits) > len(bits)


def graph(rng, size):
    """(the neighbours of each node, whether three nodes are all joined)."""
    n = rng.randint(4, size)
    edges = {(a, b) for a in range(n) for b in range(a) if rng.random() < 1.6 / n}
    near = [[b for b in range(n) if (a, b) in edges or (b, a) in edges] for a in range(n)]
    return near, any(c in near[a] and c in near[b] for a, b in edges for c in range(n))


class Recursive(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.leaf, self.out = nn.Embedding(2, width), nn.Linear(width, 2)
        self.cells = nn.ModuleDict({"not": nn.Linear(width, width), "and": nn.Linear(2 * width, width),
                                    "or": nn.Linear(2 * width, width)})

    def state(self, tree):
        if isinstance(tree, bool):
            return self.leaf(fw.tensor(int(tree)))
        kind, *parts = tree
        return self.cells[kind](fw.cat([self.state(part) for part in parts], -1)).tanh()

    def forward(self, tree):
        return self.out(self.state(tree))


class Sequence(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed, self.out = nn.Embedding(2, width), nn.Linear(width, 2)
        self.gates = nn.Linear(2 * width, 4 * width)
        self.width = width

    def forward(self, bits):
        h = c = fw.zeros(self.width)
        for bit in bits:
            i, f, o, u = self.gates(fw.cat([self.embed(fw.tensor(bit)), h], -1)).chunk(4, -1)
            c = (f + 1).sigmoid() * c + i.sigmoid() * u.tanh()
            h = o.sigmoid() * c.tanh()
        return self.out(h)


class Graph(nn.Module):
    """Each node starts with a random name; what comes back to it after three steps tells of triangles."""

    def __init__(self, width, size):
        super().__init__()
        self.register_buffer("names", nn.functional.normalize(fw.randn(size, width), dim=1))
        self.hidden, self.out = nn.Linear(3, width), nn.Linear(width, 2)

    def forward(self, near):
        states, sums = [self.names[i] for i in range(len(near))], []
        for _ in range(3):
            nothing = fw.zeros_like(states[0])
            states = [sum((states[j] for j in nodes), nothing) for nodes in near]
            sums.append(sum((state * self.names[i]).sum() for i, state in enumerate(states)))
        return self.out(self.hidden(fw.stack(sums) / 10).relu())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--test", type=int, default=400, help="examples to judge by")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="small and short, as the tests run it")
    args = parser.parse_args()
    if args.quick:
        args.steps, args.batch, args.test = 50, 24, 100
    rng = random.Random(args.seed)
    fw.manual_seed(args.seed)
    fw.set_default_device(args.device)
    kinds = {"expressions": (Recursive(args.width), lambda: expression(rng, 4)),
             "sequences": (Sequence(args.width), lambda: sequence(rng, 6)),
             "graphs": (Graph(args.width, 10), lambda: graph(rng, 10))}
    worst = 100.0
    for name, (model, draw) in kinds.items():
        optimizer = fw.optim.Adam(model.parameters(), lr=0.01)
        for _ in tqdm(range(args.steps), desc=name):
            examples, labels = zip(*[draw() for _ in range(args.batch)])
            scores = together(model, examples)
            loss = nn.functional.cross_entropy(fw.stack(scores), fw.tensor(labels).long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        examples, labels = zip(*[draw() for _ in range(args.test)])
        start = time.perf_counter()
        scores = fw.stack(together(model, examples))
        scores.sum().backward()
        middle = time.perf_counter()
        single = fw.stack([model(one) for one in examples])
        single.sum().backward()
        end = time.perf_counter()
        assert fw.allclose(scores, single, rtol=1e-4, atol=1e-5)
        right = 100 * (scores.argmax(1) == fw.tensor(labels)).float().mean().item()
        worst = min(worst, right)
        print(f"{name}: {right:.1f}% of {args.test} right, {1e3 * (middle - start):.0f} ms together, "
              f"{1e3 * (end - middle):.0f} ms one by one")
    print(f"at least {worst:.1f}% right of each kind")


if __name__ == "__main__":
    main()
