"""A Wasserstein GAN with gradient penalty learns a ring of eight clouds of points.

The penalty is a derivative of a derivative: the norm of the critic's gradient is part of its loss.
Source: Gulrajani et al., Improved training of Wasserstein GANs, NeurIPS 2017.
"""

import argparse
from pathlib import Path

from pictures import draw_points
from tqdm import tqdm

import framework as fw
from framework import nn
from framework.models import MLP


def ring(count: int) -> fw.Tensor:
    """Points around eight places of a circle of radius 2."""
    angle = fw.randint(0, 8, (count,)) * (fw.pi / 4)
    return 2 * fw.stack([angle.cos(), angle.sin()], 1) + 0.05 * fw.randn(count, 2)


def penalty(critic: nn.Module, real: fw.Tensor, made: fw.Tensor) -> fw.Tensor:
    """How far the slope of the critic is from 1, between real and made points."""
    share = fw.rand(len(real), 1, device=real.device)
    between = (share * real + (1 - share) * made).requires_grad_()
    (slope,) = fw.autograd.grad(critic(between).sum(), between, create_graph=True)
    return ((slope.norm(dim=1) - 1) ** 2).mean()


def covered(points: fw.Tensor) -> tuple[int, float]:
    """(clouds with at least 2 % of the points, share of the points that lie in a cloud)."""
    angle = fw.arange(8, device=points.device) * (fw.pi / 4)
    near = fw.cdist(points, 2 * fw.stack([angle.cos(), angle.sin()], 1)) < 0.3
    return int((near.float().mean(0) > 0.02).sum()), float(near.any(1).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--critic-steps", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder for a picture of points")
    parser.add_argument("--quick", action="store_true", help="fewer steps, in seconds")
    args = parser.parse_args()
    steps = 250 if args.quick else args.steps
    fw.manual_seed(args.seed)
    generator, critic = MLP(4, [64, 64], 2).to(args.device), MLP(2, [64, 64], 1).to(args.device)
    adam = {"lr": 3e-3, "betas": (0.5, 0.9)}
    for_generator = fw.optim.Adam(generator.parameters(), **adam)
    for_critic = fw.optim.Adam(critic.parameters(), **adam)
    noise = lambda: fw.randn(256, 4, device=args.device)
    bar = tqdm(range(steps))
    for _ in bar:
        for _ in range(args.critic_steps):
            real, made = ring(256).to(args.device), generator(noise()).detach()
            distance = critic(real).mean() - critic(made).mean()
            for_critic.zero_grad()
            (penalty(critic, real, made) - distance).backward()
            for_critic.step()
        for_generator.zero_grad()
        (-critic(generator(noise())).mean()).backward()
        for_generator.step()
        bar.set_postfix(distance=f"{distance.item():.3f}", refresh=False)
    with fw.no_grad():
        points = generator(fw.randn(2000, 4, device=args.device))
    clouds, share = covered(points)
    if args.out:
        draw_points(args.out / "clouds.png", real=ring(500), drawn=points)
    print(f"{clouds} of 8 clouds found, {share:.1%} of the points lie in one")


if __name__ == "__main__":
    main()
