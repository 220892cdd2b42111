"""Actor and critic learn to balance a pole on a cart; many carts run at once as rows of one tensor.

Source of the physics: Barto, Sutton and Anderson, Neuronlike adaptive elements that can solve difficult
learning control problems, IEEE SMC 1983; of the method: Mnih et al., Asynchronous methods for deep
reinforcement learning, ICML 2016.
"""

import argparse
from pathlib import Path

from tqdm import tqdm

import framework as fw
from framework import nn
from framework.distributions import Categorical
from framework.models import MLP
from framework.utils.training import History


class Carts:
    """Carts with poles: state is (position, speed, angle, turning speed); an episode has up to 200 steps."""

    LIMIT = 200

    def __init__(self, count: int) -> None:
        self.state = fw.rand(count, 4) * 0.1 - 0.05
        self.age = fw.zeros(count, dtype=fw.int64)

    def step(self, push_right: fw.Tensor) -> tuple[fw.Tensor, fw.Tensor]:
        """(whether the pole fell, whether the episode is over); carts that are over start anew."""
        x, speed, angle, turning = self.state.unbind(1)
        force = fw.where(push_right.bool(), 10.0, -10.0)
        sine, cosine = angle.sin(), angle.cos()
        pull = (force + 0.05 * turning ** 2 * sine) / 1.1
        bend = (9.8 * sine - cosine * pull) / (0.5 * (4 / 3 - 0.1 * cosine ** 2 / 1.1))
        pushed = pull - 0.05 * bend * cosine / 1.1
        self.state = self.state + 0.02 * fw.stack([speed, pushed, turning, bend], 1)
        self.age += 1
        fell = (self.state[:, 0].abs() > 2.4) | (self.state[:, 2].abs() > 12 * fw.pi / 180)
        over = fell | (self.age >= self.LIMIT)
        self.state = fw.where(over[:, None], fw.rand(len(x), 4) * 0.1 - 0.05, self.state)
        self.age = fw.where(over, 0, self.age)
        return fell, over


@fw.no_grad()
def score(actor: nn.Module, count: int = 50) -> float:
    """The mean length of an episode in which the likelier action is always taken."""
    carts, alive, lengths = Carts(count), fw.ones(count, dtype=fw.bool), fw.zeros(count)
    for _ in range(Carts.LIMIT):
        lengths += alive.float()
        _, over = carts.step(actor(carts.state).argmax(1))
        alive &= ~over
    return lengths.mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=300, help="rounds of 20 steps of all carts")
    parser.add_argument("--carts", type=int, default=32)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder for a picture of the falls")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, in seconds")
    args = parser.parse_args()
    fw.manual_seed(args.seed)
    fw.set_default_device(args.device)
    actor, critic = MLP(4, [64], 2, activation=nn.Tanh), MLP(4, [64], 1, activation=nn.Tanh)
    optimizer = fw.optim.Adam([*actor.parameters(), *critic.parameters()], lr=args.lr)
    carts, discount = Carts(args.carts), 0.98
    before, history = score(actor), History()
    bar = tqdm(range(120 if args.quick else args.rounds))
    for i in bar:
        states, choices, falls, ends = [], [], [], []
        for _ in range(20):
            states.append(carts.state)
            with fw.no_grad():
                choices.append(Categorical(logits=actor(carts.state)).sample())
            fell, over = carts.step(choices[-1])
            falls.append(fell)
            ends.append(over)
        with fw.no_grad():
            value = critic(carts.state)[:, 0]
        returns = []
        for fell, over in zip(reversed(falls), reversed(ends)):
            value = 1.0 + discount * fw.where(over, fw.where(fell, 0.0, 1 / (1 - discount)), value)
            returns.append(value)
        target, state = fw.cat(returns[::-1]), fw.cat(states)
        policy, worth = Categorical(logits=actor(state)), critic(state)[:, 0]
        advantage = (target - worth).detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        loss = (-(policy.log_prob(fw.cat(choices)) * advantage).mean()
                + 0.01 * nn.functional.smooth_l1_loss(worth, target) - 0.01 * policy.entropy().mean())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(actor.parameters(), 0.5)
        optimizer.step()
        history.add(round=i + 1, falls=int(sum(f.sum() for f in falls)))
        bar.set_postfix(falls=history["falls"][-1], refresh=False)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        history.plot("falls", x="round", path=args.out / "falls.svg")
    print(f"mean episode {score(actor):.1f} steps of at most {Carts.LIMIT} (untrained: {before:.1f})")


if __name__ == "__main__":
    main()
