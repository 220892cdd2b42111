"""Sentiment of sentences by a Tree-LSTM: the code for one tree, run for many at once by dynamic batching.

A sentence is a binary tree over its words (K. S. Tai et al., arXiv:1503.00075, the N-ary cell with N = 2).
``model(tree)`` is written for one tree; ``batching.together`` calls it for each tree of a batch, puts the
operations off and runs those of a kind as one call, forward and backward. The cell is marked as a ``unit``.

Data: ``--data`` names a folder with train.tsv and dev.tsv, lines of sentence, tab, 0 or 1 (SST-2). It has
no trees, so they are made by a rule: a phrase is cut before its strongest separator (punctuation, then
conjunctions, relative words, prepositions), of several before the one nearest to the middle; without one
in the middle.
Without ``--data`` short sentences are made up, in which "not" and "never" turn the sentiment around.
"""

import argparse
import itertools
import random
from pathlib import Path

from tqdm import tqdm

import framework as fw
from framework import nn
from framework.batching import together, unit

SEPARATORS = [
    {",", ";", ":", "--", "..."},
    {"but", "and", "or", "yet", "though", "although", "while", "because"},
    {"that", "which", "who", "whose", "than", "as", "if", "when", "where"},
    {"of", "in", "to", "for", "with", "on", "at", "from", "by", "about", "into", "through", "without"},
]
GOOD = ["good", "fine", "clever", "moving", "funny", "lovely"]
BAD = ["bad", "dull", "silly", "boring", "poor", "ugly"]


def tree_of(words):
    """The words as nested pairs."""
    if len(words) == 1:
        return words[0]
    at = len(words) // 2
    for kind in SEPARATORS:
        places = [i for i in range(1, len(words)) if words[i] in kind]
        if places:
            at = min(places, key=lambda i: abs(i - len(words) / 2))
            break
    return tree_of(words[:at]), tree_of(words[at:])


def made_up(rng):
    """Sentences with their sentiment."""
    found = []
    for a, b in itertools.product(GOOD + BAD, repeat=2):
        turned, joint = rng.random() < 0.5, rng.choice(["and", "but"])
        good = (a in GOOD) != turned
        text = f"the film is {'not ' if turned else ''}{a}"
        if joint == "and" or rng.random() < 0.5:  # what comes after "but" counts
            text += f" {joint} the end is {b}"
            good = good if joint == "and" else b in GOOD
        found.append((text, int(good)))
    rng.shuffle(found)
    return found[:-30], found[-30:]


def read(folder, name):
    lines = (Path(folder) / name).read_text(encoding="utf-8").splitlines()
    return [(text, int(label)) for text, _, label in (line.rpartition("\t") for line in lines if line)]


class TreeLSTM(nn.Module):
    """``forward`` takes (tree, label) and gives the scores of the two classes."""

    def __init__(self, words, width):
        super().__init__()
        self.numbers = {word: fw.tensor(i + 1) for i, word in enumerate(words)}
        self.embed = nn.Embedding(len(words) + 1, width)
        self.leaf, self.gates = nn.Linear(width, 3 * width), nn.Linear(2 * width, 5 * width)
        self.out = nn.Linear(width, 2)

    @unit
    def word(self, x):
        i, o, u = self.leaf(x).chunk(3, -1)
        c = i.sigmoid() * u.tanh()
        return o.sigmoid() * c.tanh(), c

    @unit
    def join(self, left, right):
        (h, c), (k, d) = left, right
        i, o, f, g, u = self.gates(fw.cat([h, k], -1)).chunk(5, -1)
        c = i.sigmoid() * u.tanh() + (f + 1).sigmoid() * c + (g + 1).sigmoid() * d
        return o.sigmoid() * c.tanh(), c

    def state(self, tree):
        if isinstance(tree, str):
            return self.word(self.embed(self.numbers.get(tree, fw.tensor(0))))
        return self.join(self.state(tree[0]), self.state(tree[1]))

    def forward(self, tree):
        return self.out(self.state(tree)[0])


def accuracy(model, examples):
    with fw.no_grad():
        scores = fw.stack(together(model, [tree for tree, _ in examples]))
    return (scores.argmax(1) == fw.tensor([label for _, label in examples])).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="a folder with train.tsv and dev.tsv; default: made-up sentences")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=128, help="trees in a batch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="small and short, as the tests run it")
    args = parser.parse_args()
    if args.quick:
        args.width, args.epochs, args.batch = 16, 16 if args.data is None else 1, 16
    rng = random.Random(args.seed)
    fw.manual_seed(args.seed)
    fw.set_default_device(args.device)
    train, test = (read(args.data, "train.tsv"), read(args.data, "dev.tsv")) if args.data else made_up(rng)
    if args.quick:
        train, test = train[:1500], test[:200]
    train, test = [[(tree_of(text.split()), label) for text, label in part] for part in (train, test)]
    words = sorted({word for text, _ in train for word in flat(text)})
    model = TreeLSTM(words, args.width)
    optimizer = fw.optim.Adam(model.parameters(), lr=0.01 if args.data is None else 2e-3)
    for epoch in range(args.epochs):
        rng.shuffle(train)
        for i in (bar := tqdm(range(0, len(train), args.batch), desc=f"epoch {epoch + 1}")):
            batch = train[i:i + args.batch]
            scores = together(model, [tree for tree, _ in batch])
            loss = nn.functional.cross_entropy(fw.stack(scores), fw.tensor([label for _, label in batch]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            bar.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
    schedule = scores.schedule
    print(f"the last batch: {schedule.calls} operations in {schedule.runs} calls")
    print(f"test accuracy {100 * accuracy(model, test):.1f}% of {len(test)} sentences")


def flat(tree):
    """The words of a tree."""
    return [tree] if isinstance(tree, str) else flat(tree[0]) + flat(tree[1])


if __name__ == "__main__":
    main()
