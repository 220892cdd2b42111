"""REINFORCE balances a pole: whole episodes, each choice made likelier by what came after it.

Source: Williams, Simple statistical gradient-following algorithms for connectionist reinforcement learning,
Machine Learning 1992. The carts are those of cartpole.py; what the others had left at the same step is the
baseline. ``--gymnasium`` also plays CartPole-v1 of that package, where it is installed.
"""

import argparse
from pathlib import Path

from cartpole import Carts, score

import framework as fw
from framework import nn
from framework.distributions import Categorical
from framework.models import MLP
from framework.utils.training import History, progress


def episodes(actor: nn.Module, count: int) -> tuple[fw.Tensor, fw.Tensor, fw.Tensor]:
    """States (T, N, 4), choices (T, N) and whether the episode still went on (T, N), until all have ended."""
    carts, alive = Carts(count), fw.ones(count, dtype=fw.bool)
    states, choices, on = [], [], []
    with fw.no_grad():
        while alive.any():
            states.append(carts.state)
            on.append(alive)
            choices.append(Categorical(logits=actor(carts.state)).sample())
            alive = alive & ~carts.step(choices[-1])[1]
    return fw.stack(states), fw.stack(choices), fw.stack(on)


def left(on: fw.Tensor, discount: float) -> fw.Tensor:
    """The discounted number of steps that each episode had before it from each step on."""
    found, ahead = fw.zeros(on.shape), fw.zeros(on.shape[1])
    for t in range(len(on) - 1, -1, -1):
        ahead = (1 + discount * ahead) * on[t]
        found[t] = ahead
    return found


def played(actor: nn.Module, count: int, seed: int) -> float:
    """The mean length of episodes of gymnasium's own environment, at most 200 steps."""
    import gymnasium

    world, steps = gymnasium.make("CartPole-v1", max_episode_steps=Carts.LIMIT), 0
    for i in range(count):
        (state, _), over = world.reset(seed=seed + i), False
        while not over:
            with fw.no_grad():
                choice = int(actor(fw.tensor(state)).argmax())
            state, _, fell, late, _ = world.step(choice)
            over, steps = fell or late, steps + 1
    return steps / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=80)
    parser.add_argument("--carts", type=int, default=32, help="episodes in a round")
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder for a picture of the lengths")
    parser.add_argument("--gymnasium", action="store_true", help="also play CartPole-v1 of gymnasium")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, in seconds")
    args = parser.parse_args()
    fw.manual_seed(args.seed)
    fw.set_default_device(args.device)
    actor, history = MLP(4, [32], 2, activation=nn.Tanh), History()
    optimizer = fw.optim.Adam(actor.parameters(), lr=args.lr)
    before = score(actor)
    with progress(range(15 if args.quick else args.rounds)) as bar:
        for i in bar:
            states, choices, on = episodes(actor, args.carts)
            steps, count = left(on, 0.98), on.sum(1, keepdim=True)
            gain = (steps - steps.sum(1, keepdim=True) / count)[on]  # better than the others at this step
            likely = Categorical(logits=actor(states[on])).log_prob(choices[on])
            optimizer.zero_grad()
            (-(likely * gain / (gain.std() + 1e-6)).mean()).backward()
            optimizer.step()
            history.add(round=i + 1, steps=float(on.sum()) / args.carts)
            bar.show(steps=history["steps"][-1])
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        history.plot("steps", x="round", path=args.out / "steps.svg")
    if args.gymnasium:
        print(f"in gymnasium's CartPole-v1: {played(actor, 20, args.seed):.1f} steps")
    print(f"mean episode {score(actor):.1f} steps of at most {Carts.LIMIT} (untrained: {before:.1f})")


if __name__ == "__main__":
    main()
