"""A DCGAN draws handwritten digits: convolutions that enlarge noise, against convolutions that judge.

Source: Radford, Metz and Chintala, Unsupervised representation learning with deep convolutional generative
adversarial networks, ICLR 2016. Digits are scikit-learn's; a classifier trained on real ones says of how many
kinds the drawn ones are, and how sure it is.
"""

import argparse
from pathlib import Path

from pictures import draw_sheet
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import framework as fw
from framework import nn
from framework.data import DataLoader, TensorDataset
from framework.utils.training import progress


def generator(noise: int, width: int) -> nn.Module:
    """Noise (N, noise, 1, 1) -> pictures (N, 1, 8, 8) in [-1, 1]."""
    return nn.Sequential(
        nn.ConvTranspose2d(noise, 2 * width, 2, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(),
        nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
        nn.ConvTranspose2d(width, 1, 4, 2, 1), nn.Tanh())


def judge(width: int) -> nn.Module:
    """Pictures -> one score each, high for real ones."""
    return nn.Sequential(
        nn.Conv2d(1, width, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * width), nn.LeakyReLU(0.2),
        nn.Conv2d(2 * width, 1, 2), nn.Flatten(0))


def start(module: nn.Module) -> None:
    """The paper's starting values."""
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0.0, 0.02)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--width", type=int, default=48)
    parser.add_argument("--noise", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder for a picture of drawn digits")
    parser.add_argument("--quick", action="store_true", help="a narrow network, few epochs, in seconds")
    args = parser.parse_args()
    width, epochs = (16, 12) if args.quick else (args.width, args.epochs)
    fw.manual_seed(args.seed)
    digits = load_digits()
    real = fw.tensor(digits.images, dtype=fw.float32)[:, None] / 8 - 1
    loader = DataLoader(TensorDataset(real), 64, shuffle=True, drop_last=True)
    draw, tell = generator(args.noise, width).to(args.device), judge(width).to(args.device)
    draw.apply(start), tell.apply(start)
    drawer, teller = (fw.optim.Adam(m.parameters(), lr=1e-3, betas=(0.5, 0.999)) for m in (draw, tell))

    def loss(scores: fw.Tensor, wanted: float) -> fw.Tensor:
        return nn.functional.binary_cross_entropy_with_logits(scores, fw.full_like(scores, wanted))

    for epoch in range(epochs):
        with progress(loader, desc=f"epoch {epoch + 1}/{epochs}") as bar:
            for (x,) in bar:
                drawn = draw(fw.randn(len(x), args.noise, 1, 1, device=args.device))
                teller.zero_grad()
                told = loss(tell(x.to(args.device)), 0.9) + loss(tell(drawn.detach()), 0.0)
                told.backward()
                teller.step()
                drawer.zero_grad()
                fooled = loss(tell(drawn), 1.0)
                fooled.backward()
                drawer.step()
                bar.show(judge=told.item(), drawer=fooled.item())
    draw.eval()
    with fw.no_grad():
        drawn = draw(fw.randn(300, args.noise, 1, 1, device=args.device)).cpu()
    if args.out:
        draw_sheet(args.out / "drawn.png", 0.5 - drawn[:96, 0] / 2, columns=12)
    critic = LogisticRegression(max_iter=500).fit(real.flatten(1).numpy(), digits.target)
    shares = critic.predict_proba(drawn.flatten(1).numpy())
    kinds = len(set(shares.argmax(1).tolist()))
    blot = fw.rand(300, 64) * 2 - 1
    noise_sure = critic.predict_proba(blot.numpy()).max(1).mean()
    away = float(fw.cdist(drawn.flatten(1), real.flatten(1)).min(1).values.mean())
    print(f"drew {kinds} of 10 kinds, {away:.2f} from the nearest real digit (noise: "
          f"{float(fw.cdist(blot, real.flatten(1)).min(1).values.mean()):.2f}), sure "
          f"{shares.max(1).mean():.0%} "
          f"(noise: {noise_sure:.0%})")


if __name__ == "__main__":
    main()
