"""A graph convolutional network (Kipf and Welling, ICLR 2017) on a generated citation graph.

    python examples/gcn.py [--quick]

Documents of a few topics cite mostly documents of their own topic, and use words that are only a little
more frequent there. A few documents have labels; the network reads the others' topics from words and
citations. The adjacency matrix D^-1/2 (A + I) D^-1/2 is one sparse CSR tensor, and each layer one product
with it.
"""

import argparse

import numpy as np
from tqdm import tqdm

import framework as fw
from framework import nn


def citations(documents, topics, words, rng, links=5, loyal=0.8):
    """(features, topic of each document, edges (2, n)) of a graph in which most links stay in their topic."""
    topic = rng.integers(0, topics, documents)
    members = [np.flatnonzero(topic == t) for t in range(topics)]
    source = np.repeat(np.arange(documents), links)
    within = rng.random(len(source)) < loyal
    target = np.where(within, [rng.choice(members[t]) for t in topic[source]],
                      rng.integers(0, documents, len(source)))
    often = rng.random((topics, words)) < 0.1
    features = rng.random((documents, words)) < np.where(often[topic], 0.06, 0.03)
    return features.astype(np.float32), topic, np.stack([source, target])


def normalised(edges, documents):
    """D^-1/2 (A + I) D^-1/2 as a sparse matrix, with every citation in both directions."""
    loops = np.arange(documents)
    both = np.concatenate([edges, edges[::-1], np.stack([loops, loops])], 1)
    found = fw.sparse_coo_tensor(both, fw.ones(both.shape[1]), (documents, documents)).coalesce()
    row, column = found.indices()
    degree = fw.bincount(row, minlength=documents).to(fw.float32).rsqrt()
    values = degree[row] * degree[column]
    return fw.sparse_coo_tensor(found.indices(), values, found.shape, is_coalesced=True).to_sparse_csr()


class GCN(nn.Module):
    """Two graph convolutions: words to hidden features, those to topics."""

    def __init__(self, words, hidden, topics, dropout=0.5):
        super().__init__()
        self.first, self.second = nn.Linear(words, hidden, bias=False), nn.Linear(hidden, topics)
        self.dropout = nn.Dropout(dropout)

    def forward(self, adjacency, x):
        x = fw.sparse.mm(adjacency, self.first(self.dropout(x))).relu()
        return fw.sparse.mm(adjacency, self.second(self.dropout(x)))


def accuracy(scores, topic, chosen):
    return float((scores[chosen].argmax(1) == topic[chosen]).float().mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=2700)
    parser.add_argument("--topics", type=int, default=7)
    parser.add_argument("--words", type=int, default=1400)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--labels", type=int, default=20, help="documents of each topic that have a label")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="a small graph, for a few seconds")
    options = parser.parse_args()
    if options.quick:
        options.documents, options.words, options.epochs = 500, 200, 60

    rng = np.random.default_rng(options.seed)
    fw.manual_seed(options.seed)
    features, topic, edges = citations(options.documents, options.topics, options.words, rng)
    adjacency = normalised(edges, options.documents).to(options.device)
    x, y = (fw.from_numpy(array).to(options.device) for array in (features, topic))
    x = x / x.sum(1, keepdim=True).clamp(min=1)
    order = rng.permutation(options.documents)
    labelled = np.concatenate([order[topic[order] == t][:options.labels] for t in range(options.topics)])
    train = fw.from_numpy(labelled).to(options.device)
    test = fw.from_numpy(np.setdiff1d(order, labelled)).to(options.device)

    model = GCN(options.words, options.hidden, options.topics).to(options.device)
    optimizer = fw.optim.Adam(model.parameters(), lr=options.lr, weight_decay=5e-4)
    for epoch in (bar := tqdm(range(1, options.epochs + 1))):
        model.train()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(adjacency, x)[train], y[train])
        loss.backward()
        optimizer.step()
        if epoch % 20 == 0 or epoch == options.epochs:
            model.eval()
            with fw.no_grad():
                found = accuracy(model(adjacency, x), y, test)
            bar.write(f"epoch {epoch}: loss {loss.item():.4f}, test accuracy {found:.3f}")
    print(f"accuracy {found:.4f}")


if __name__ == "__main__":
    main()
