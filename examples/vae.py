"""A variational autoencoder of handwritten digits, and a picture of digits that nobody wrote.

Source: Kingma and Welling, Auto-encoding variational Bayes, ICLR 2014.
"""

import argparse
from pathlib import Path

from pictures import draw_sheet
from sklearn.datasets import load_digits
from tqdm import tqdm

import framework as fw
from framework import nn
from framework.distributions import Bernoulli, Normal, kl_divergence


class VAE(nn.Module):
    """Images of 64 numbers in [0, 1] to a normal distribution of codes and back."""

    def __init__(self, code: int, width: int = 128) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 2 * code))
        self.decoder = nn.Sequential(nn.Linear(code, width), nn.ReLU(), nn.Linear(width, 64))

    def encode(self, x: fw.Tensor) -> Normal:
        mean, log_std = self.encoder(x).chunk(2, dim=1)
        return Normal(mean, log_std.exp())

    def loss(self, x: fw.Tensor) -> fw.Tensor:
        """Minus the evidence lower bound, in nats per image."""
        code = self.encode(x)
        likelihood = Bernoulli(logits=self.decoder(code.rsample()), validate_args=False).log_prob(x).sum(1)
        prior = Normal(fw.zeros_like(code.mean), fw.ones_like(code.mean))
        return (kl_divergence(code, prior).sum(1) - likelihood).mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--code", type=int, default=8, help="numbers in a code")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder for a picture of drawn digits")
    parser.add_argument("--quick", action="store_true", help="fewer epochs, in seconds")
    args = parser.parse_args()
    fw.manual_seed(args.seed)
    images = fw.tensor(load_digits().data).float().to(args.device) / 16
    images = images[fw.randperm(len(images))]
    train, test = images[:1437], images[1437:]
    model = VAE(args.code).to(args.device)
    optimizer = fw.optim.Adam(model.parameters(), lr=args.lr)
    loader = fw.data.DataLoader(fw.data.TensorDataset(train), batch_size=64, shuffle=True)
    for _ in tqdm(range(8 if args.quick else args.epochs)):
        for (x,) in loader:
            optimizer.zero_grad()
            model.loss(x).backward()
            optimizer.step()
    with fw.no_grad():
        bound = model.loss(test).item()
        drawn = model.decoder(fw.randn(60, args.code, device=args.device)).sigmoid().cpu()
    if args.out:
        draw_sheet(args.out / "drawn.png", 1 - drawn.reshape(-1, 8, 8), columns=12)
    print(f"held-out bound {bound:.2f} nats per image")


if __name__ == "__main__":
    main()
