"""Two LSTM cells learn sine waves with LBFGS, then go on by themselves."""

import argparse
from pathlib import Path

import framework as fw
from framework import nn
from framework.utils.training import History, progress


class Waves(nn.Module):
    """Reads waves (N, L), predicts each next value, and ``future`` more from its own predictions."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.width = width
        self.first, self.second = nn.LSTMCell(1, width), nn.LSTMCell(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, waves: fw.Tensor, future: int = 0) -> fw.Tensor:
        zeros = fw.zeros(len(waves), self.width, dtype=waves.dtype, device=waves.device)
        a, b = (zeros, zeros), (zeros, zeros)
        found: list[fw.Tensor] = []
        for t in range(waves.shape[1] + future):
            x = waves[:, t:t + 1] if t < waves.shape[1] else found[-1]
            a = self.first(x, a)
            b = self.second(a[0], b)
            found.append(self.out(b[0]))
        return fw.cat(found, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=8, help="steps of LBFGS, of up to 20 evaluations each")
    parser.add_argument("--length", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="folder for a picture of a wave that goes on")
    parser.add_argument("--quick", action="store_true", help="shorter waves, in seconds")
    args = parser.parse_args()
    steps, length, width = (4, 40, 16) if args.quick else (args.steps, args.length, 32)
    fw.manual_seed(args.seed)
    shifts = fw.rand(40, 1, dtype=fw.float64) * 100
    waves = ((fw.arange(length + 1, dtype=fw.float64) + shifts) / 5).sin().to(args.device)
    train, test = waves[4:], waves[:4]
    model = Waves(width).double().to(args.device)
    optimizer = fw.optim.LBFGS(model.parameters(), lr=0.8)
    calls = 0

    def closure() -> fw.Tensor:
        nonlocal calls
        calls += 1
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(train[:, :-1]), train[:, 1:])
        loss.backward()
        return loss

    with progress(range(steps)) as bar:
        for _ in bar:
            bar.show(loss=optimizer.step(closure).item())
    with fw.no_grad():
        seen = length * 3 // 4
        went_on = model(test[:, :seen], future=length - seen)[:, seen:]
        error = nn.functional.mse_loss(went_on, test[:, seen + 1:]).item() ** 0.5
        loss = nn.functional.mse_loss(model(test[:, :-1]), test[:, 1:]).item()
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        history = History()
        for i, (wanted, found) in enumerate(zip(test[0, seen + 1:], went_on[0])):
            history.add(step=seen + 1 + i, wave=wanted, alone=found)
        history.plot(path=args.out / "waves.svg")
    print(f"test loss {loss:.6f} after {calls} evaluations; going on alone it is off by {error:.3f}")


if __name__ == "__main__":
    main()
