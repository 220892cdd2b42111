"""Train a small GPT on the prose of Python's own documentation, letter by letter, and let it write.

    python examples/gpt.py                           # two minutes
    python examples/gpt.py --text ../shared/data/text/tinyshakespeare.txt --steps 2000 --out runs/gpt
    python examples/gpt.py --text ... --steps 2000 --out runs/gpt --resume     # go on after an interruption
"""

import argparse
import math
from pathlib import Path

from tqdm import tqdm

import framework as fw
import framework.nn.functional as F
from framework.io import Checkpointer
from framework.models import GPT2


def load_text(path: str | None) -> str:
    """The text of a file, or the help pages that come with Python."""
    if path is not None:
        return Path(path).read_text(encoding="utf-8")
    from pydoc_data.topics import topics
    return "\n".join(topics[name] for name in sorted(topics))


def batch(data: fw.Tensor, size: int, length: int) -> tuple[fw.Tensor, fw.Tensor]:
    """Random pieces of the text, and the same pieces one letter further on."""
    starts = fw.randint(0, len(data) - length - 1, (size, 1)) + fw.arange(length)
    return data[starts], data[starts + 1]


@fw.no_grad()
def held_out(model: GPT2, data: fw.Tensor, length: int) -> float:
    """The mean loss on text that was not trained on, in nats per letter."""
    model.eval()
    pieces = data[:(len(data) - 1) // length * length][:64 * length].reshape(-1, length)
    following = data[1:pieces.numel() + 1].reshape(-1, length)
    return F.cross_entropy(model(pieces).flatten(0, 1), following.flatten()).item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", metavar="FILE", help="a text to learn from")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--length", type=int, default=64, help="letters that it looks back on")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder for checkpoints, one every 100 steps")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in --out")
    parser.add_argument("--quick", action="store_true", help="a smaller model, in seconds")
    args = parser.parse_args()
    if args.quick:
        args.steps, args.width, args.layers, args.length = 120, 32, 2, 32

    fw.manual_seed(args.seed)
    text = load_text(args.text)
    letters = sorted(set(text))
    number = {letter: i for i, letter in enumerate(letters)}
    data = fw.tensor([number[letter] for letter in text])
    cut = len(data) * 9 // 10
    train, test = data[:cut], data[cut:]
    model = GPT2(vocabulary=len(letters), context=args.length, layers=args.layers, width=args.width, heads=4,
                 dropout=0.0).to(args.device)
    optimizer = fw.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.1)
    schedule = fw.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=args.steps)
    parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
    checkpoints, first = Checkpointer(args.out, keep=1) if args.out else None, 0
    if args.resume and checkpoints and (found := checkpoints.resume(**parts)) is not None:
        first = found["step"]
    bar = tqdm(range(first, args.steps), initial=first, total=args.steps)
    for step in bar:
        x, y = batch(train, args.batch_size, args.length)
        loss = F.cross_entropy(model(x.to(args.device)).flatten(0, 1), y.to(args.device).flatten())
        optimizer.zero_grad()
        loss.backward()
        fw.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        bar.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
        if checkpoints and (step + 1) % 100 == 0:
            checkpoints.save(step + 1, **parts)

    start = fw.tensor([[number["\n"]]], device=args.device)
    written = model.eval().generate(start, args.length - 1, temperature=0.8, top_k=20)
    print("".join(letters[i] for i in written[0].tolist()))
    loss = held_out(model, test.to(args.device), args.length)
    print(f"held-out loss {loss:.3f} nats per letter (guessing evenly: {math.log(len(letters)):.3f})")


if __name__ == "__main__":
    main()
