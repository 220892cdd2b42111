"""Train an LSTM to write text, character by character.

    python examples/language_model.py                      # Shakespeare in ../shared/data, a few minutes
    python examples/language_model.py --text FILE --steps 200

Prints the loss in bits per character on text that was not trained on, and what the model writes.
"""

import argparse
import math
import sys
from pathlib import Path

from tqdm import tqdm

import framework as fw
import framework.nn as nn
import framework.nn.functional as F

TEXT = Path(__file__).resolve().parent.parent.parent / "shared/data/text/tinyshakespeare.txt"


class Writer(nn.Module):
    """What character comes next: an embedding, an LSTM, and a linear layer over its outputs."""

    def __init__(self, characters: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(characters, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, dropout=0.1)
        self.out = nn.Linear(width, characters)

    def forward(self, x: fw.Tensor, state: tuple | None = None) -> tuple[fw.Tensor, tuple]:
        y, state = self.lstm(self.embed(x), state)
        return self.out(y), state


def windows(text: fw.Tensor, length: int, batch: int) -> tuple[fw.Tensor, fw.Tensor]:
    """Random pieces of the text and, for each character, the next one: both (length, batch)."""
    starts = fw.randint(len(text) - length, (batch,))
    at = fw.arange(length).unsqueeze(1) + starts
    return text[at], text[at + 1]


def bits(model: Writer, x: fw.Tensor, y: fw.Tensor) -> fw.Tensor:
    """The loss in bits per character."""
    return F.cross_entropy(model(x)[0].flatten(0, 1), y.flatten()) / math.log(2)


@fw.no_grad()
def write(model: Writer, letters: list[str], length: int) -> str:
    """Text of the model's own, each character drawn by its probability."""
    x, state, found = fw.tensor([[letters.index("\n")]]), None, []
    for _ in range(length):
        scores, state = model(x, state)
        x = fw.multinomial(scores[0].softmax(-1), 1)
        found.append(letters[x.item()])
    return "".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--text", type=Path, default=TEXT, help="a text file to learn from")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="a narrow network, few steps, in seconds")
    options = parser.parse_args()
    if not options.text.exists():
        sys.exit(f"{options.text} is not there; name a text file with --text FILE")
    if options.quick:
        options.steps, options.width, options.length = 120, 64, 32
    fw.manual_seed(options.seed)
    fw.set_default_device(options.device)
    text = options.text.read_text(encoding="utf-8")
    letters = sorted({*text, "\n"})
    numbers = {letter: n for n, letter in enumerate(letters)}
    data = fw.tensor([numbers[letter] for letter in text])
    trained, held_out = data[:-len(data) // 10], data[-len(data) // 10:]
    model = Writer(len(letters), options.width)
    optimizer = fw.optim.Adam(model.parameters(), lr=3e-3)
    for step in (bar := tqdm(range(1, options.steps + 1))):
        optimizer.zero_grad()
        loss = bits(model, *windows(trained, options.length, options.batch))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0 or step == options.steps:
            model.eval()
            with fw.no_grad():
                other = bits(model, *windows(held_out, options.length, 4 * options.batch))
            model.train()
            bar.write(f"step {step}: {loss.item():.2f} bits per character, {other.item():.2f} on other text")
    print(write(model.eval(), letters, 300))
    print(f"held-out loss {other.item():.3f} bits per character")


if __name__ == "__main__":
    main()
