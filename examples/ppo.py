"""PPO: an agent learns to balance a pole, in steps that stay near its last policy.

Sources: Schulman et al., Proximal policy optimization algorithms, 2017; advantages: Schulman et al.,
High-dimensional continuous control using generalized advantage estimation, ICLR 2016. The carts are those
of cartpole.py.
"""

import argparse
from pathlib import Path

from cartpole import Carts, score

import framework as fw
from framework import nn
from framework.distributions import Categorical
from framework.models import MLP
from framework.utils.training import History, progress


def advantages(rewards: fw.Tensor, values: fw.Tensor, over: fw.Tensor, discount: float,
               trace: float) -> fw.Tensor:
    """(T, N): how much better each step was than the critic had thought; values (T + 1, N)."""
    found, ahead = fw.zeros_like(rewards), fw.zeros_like(rewards[0])
    for t in range(len(rewards) - 1, -1, -1):
        goes_on = (~over[t]).float()
        surprise = rewards[t] + discount * values[t + 1] * goes_on - values[t]
        ahead = surprise + discount * trace * goes_on * ahead
        found[t] = ahead
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--carts", type=int, default=32)
    parser.add_argument("--steps", type=int, default=64, help="of all carts in a round")
    parser.add_argument("--clip", type=float, default=0.2)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder for a picture of the falls")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, in seconds")
    args = parser.parse_args()
    fw.manual_seed(args.seed)
    fw.set_default_device(args.device)
    actor, critic = MLP(4, [64], 2), MLP(4, [64], 1)
    parameters = [*actor.parameters(), *critic.parameters()]
    optimizer = fw.optim.Adam(parameters, lr=args.lr)
    carts, rounds, history = Carts(args.carts), 12 if args.quick else args.rounds, History()
    with progress(range(rounds)) as bar:
        for i in bar:
            states, actions, rewards, over, falls = [], [], [], [], 0
            with fw.no_grad():
                for _ in range(args.steps):
                    states.append(carts.state)
                    actions.append(Categorical(logits=actor(carts.state)).sample())
                    fell, ended = carts.step(actions[-1])
                    rewards.append(fw.where(fell, -1.0, 0.1))
                    over.append(ended)
                    falls += int(fell.sum())
                x, a = fw.stack(states), fw.stack(actions)
                values = critic(fw.cat([x, carts.state[None]])).squeeze(-1)
                gain = advantages(fw.stack(rewards), values, fw.stack(over), 0.99, 0.95)
                wanted = (gain + values[:-1]).flatten()
                before = Categorical(logits=actor(x)).log_prob(a).flatten()
            x, a, gain = x.flatten(0, 1), a.flatten(), gain.flatten()
            gain = (gain - gain.mean()) / (gain.std() + 1e-6)
            for chosen in fw.cat([fw.randperm(len(x)) for _ in range(4)]).split(512):
                now = Categorical(logits=actor(x[chosen]))
                ratio = (now.log_prob(a[chosen]) - before[chosen]).exp()
                kept = ratio.clamp(1 - args.clip, 1 + args.clip)  # beyond it, moving further earns nothing
                policy = -fw.minimum(ratio * gain[chosen], kept * gain[chosen]).mean()
                value = nn.functional.mse_loss(critic(x[chosen]).squeeze(-1), wanted[chosen])
                loss = policy + 0.5 * value - 0.01 * now.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(parameters, 0.5)
                optimizer.step()
            history.add(round=i + 1, falls=falls)
            bar.show(critic=value.item())
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        history.plot("falls", x="round", path=args.out / "falls.svg")
    print(f"mean episode {score(actor):.0f} steps of at most {Carts.LIMIT}")


if __name__ == "__main__":
    main()
