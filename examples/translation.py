"""Translate short English sentences to French: a GRU reads, a GRU with attention writes.

    python examples/translation.py --data ../shared/data/eng-fra/eng-fra.txt     # "english<TAB>french" lines

Source: Bahdanau et al., Neural machine translation by jointly learning to align and translate, ICLR 2015.
"""

import argparse
import re
from collections import Counter
from pathlib import Path

from tqdm import tqdm

import framework as fw
from framework import nn
from framework.io import Checkpointer
from framework.nn.utils.rnn import pad_sequence

PAD, START, END, UNKNOWN = range(4)


def words_of(sentence: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", sentence.lower())


class Vocabulary:
    """Words and their numbers; words that come once only are unknown."""

    def __init__(self, sentences: list[list[str]]) -> None:
        counts = Counter(word for sentence in sentences for word in sentence)
        self.words = ["<pad>", "<start>", "<end>", "<unknown>",
                      *sorted(word for word, n in counts.items() if n > 1)]
        self.number = {word: i for i, word in enumerate(self.words)}

    def __call__(self, sentence: list[str]) -> fw.Tensor:
        return fw.tensor([START, *(self.number.get(word, UNKNOWN) for word in sentence), END])


class Translator(nn.Module):
    """Encoder, attention of each written word to the words that were read, decoder."""

    def __init__(self, source: int, target: int, width: int) -> None:
        super().__init__()
        self.read, self.write = nn.Embedding(source, width, PAD), nn.Embedding(target, width, PAD)
        self.encoder = nn.GRU(width, width // 2, batch_first=True, bidirectional=True)
        self.decoder = nn.GRU(width, width, batch_first=True)
        self.query = nn.Linear(width, width, bias=False)
        self.mix = nn.Linear(2 * width, width)
        self.out = nn.Linear(width, target)

    def encode(self, x: fw.Tensor) -> tuple[fw.Tensor, fw.Tensor]:
        memory, last = self.encoder(self.read(x))
        return memory, last.transpose(0, 1).reshape(1, len(x), -1)

    def decode(self, y: fw.Tensor, state: fw.Tensor, memory: fw.Tensor,
               mask: fw.Tensor) -> tuple[fw.Tensor, fw.Tensor]:
        hidden, state = self.decoder(self.write(y), state)
        scores = self.query(hidden) @ memory.transpose(1, 2) / hidden.shape[-1] ** 0.5
        weights = scores.masked_fill(~mask[:, None], float("-inf")).softmax(-1)
        return self.out(self.mix(fw.cat([hidden, weights @ memory], -1)).tanh()), state

    @fw.no_grad()
    def translate(self, x: fw.Tensor, limit: int = 12) -> list[list[int]]:
        memory, state = self.encode(x)
        word, found = fw.full((len(x), 1), START, device=x.device), []
        for _ in range(limit):
            logits, state = self.decode(word, state, memory, x != PAD)
            word = logits.argmax(-1)
            found.append(word)
        rows = fw.cat(found, 1).tolist()
        return [row[:row.index(END)] if END in row else row for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="pairs of sentences, a tab between them")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder for checkpoints, one every epoch")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in --out")
    parser.add_argument("--quick", action="store_true", help="fewer sentences, in seconds")
    args = parser.parse_args()
    epochs, width = (3, 48) if args.quick else (args.epochs, args.width)
    fw.manual_seed(args.seed)
    lines = args.data.read_text(encoding="utf-8").splitlines()
    pairs = [tuple(map(words_of, line.split("\t")[:2])) for line in lines]
    order = fw.randperm(len(pairs)).tolist()
    pairs = [pairs[i] for i in order]
    train, test = (pairs[:1500], pairs[-200:]) if args.quick else (pairs[:-500], pairs[-500:])
    source, target = (Vocabulary([pair[i] for pair in train]) for i in (0, 1))

    def collate(samples: list) -> tuple[fw.Tensor, fw.Tensor]:
        return tuple(pad_sequence([vocabulary(s[i]) for s in samples], batch_first=True, padding_value=PAD)
                     for i, vocabulary in enumerate((source, target)))

    model = Translator(len(source.words), len(target.words), width).to(args.device)
    optimizer = fw.optim.Adam(model.parameters(), lr=2e-3)
    loader = fw.data.DataLoader(train, batch_size=64, shuffle=True, collate_fn=collate)
    parts = {"model": model, "optimizer": optimizer, "loader": loader}
    checkpoints, first = Checkpointer(args.out, keep=1) if args.out else None, 0
    if args.resume and checkpoints and (found := checkpoints.resume(**parts)) is not None:
        first = found["step"]
    for epoch in range(first, epochs):
        for x, y in (bar := tqdm(loader, desc=f"epoch {epoch + 1}/{epochs}")):
            x, y = x.to(args.device), y.to(args.device)
            memory, state = model.encode(x)
            logits, _ = model.decode(y[:, :-1], state, memory, x != PAD)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), y[:, 1:].flatten(), ignore_index=PAD)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            bar.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
        if checkpoints:
            checkpoints.save(epoch + 1, **parts)
    x, y = (t.to(args.device) for t in collate(test))
    with fw.no_grad():
        memory, state = model.encode(x)
        logits, _ = model.decode(y[:, :-1], state, memory, x != PAD)
        real = y[:, 1:] != PAD
        right = ((logits.argmax(-1) == y[:, 1:]) & real).sum() / real.sum()
    for (english, _), found in list(zip(test, model.translate(x)))[:5]:
        print(f"{' '.join(english)}  ->  {' '.join(target.words[i] for i in found)}")
    print(f"next word right {right.item():.1%} on sentences it never saw")


if __name__ == "__main__":
    main()
