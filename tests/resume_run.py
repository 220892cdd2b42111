"""A training run that is stopped and resumed: ``python resume_run.py DIRECTORY STOP WORKERS``.

Trains to step STOP, saves, and prints a digest of everything the run consists of. Shuffling, dropout,
augmentation by all three kinds of random numbers, a schedule: whatever is not restored shows.
"""

import hashlib
import pickle
import random
import sys

import numpy as np

import framework as fw
import framework.nn as nn
import framework.nn.functional as F
from framework.data import DataLoader, Dataset
from framework.io import Checkpointer


class Augmented(Dataset):
    """Small pictures, shifted and disturbed by random numbers of Python, NumPy and the framework."""

    def __init__(self):
        r = np.random.default_rng(0)
        self.x, self.y = r.standard_normal((53, 12)).astype(np.float32), r.integers(0, 3, 53)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = np.roll(self.x[i], random.randrange(4)) + np.float32(np.random.rand() * 0.1)
        return fw.from_numpy(x) + fw.rand(12) * 0.1, int(self.y[i])


def digest(*things):
    found = hashlib.sha256()
    for thing in things:
        found.update(bits(thing))
    return found.hexdigest()


def bits(x):
    if isinstance(x, fw.Tensor):
        return f"{x.dtype}{x.shape}".encode() + x.detach().numpy().tobytes()
    if isinstance(x, dict):
        return b"".join(
            str(k).encode() + bits(v) for k, v in sorted(x.items(), key=lambda item: str(item[0]))
        )
    if isinstance(x, (list, tuple)):
        return b"".join(map(bits, x))
    return pickle.dumps(x)


def main(directory, stop, workers):
    fw.manual_seed(1)
    random.seed(2)
    np.random.seed(3)
    model = nn.Sequential(nn.Linear(12, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
    optimizer = fw.optim.AdamW(model.named_parameters(), lr=0.02)
    scheduler = fw.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
    loader = DataLoader(Augmented(), batch_size=5, shuffle=True, num_workers=workers)
    noise = fw.Generator().manual_seed(9)
    checkpoints = Checkpointer(directory, background=True)
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "loader": loader, "noise": noise}
    losses, step = [], 0
    found = checkpoints.resume(**parts)
    if found:
        step, losses = found["step"], found["losses"]
    while step < stop:
        for x, y in loader:
            loss = F.cross_entropy(model(x + fw.randn(x.shape, generator=noise) * 0.01), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
            step += 1
            if step == stop:
                break
    checkpoints.save(step, losses=losses, **parts)
    checkpoints.close()
    print(
        digest(
            model.state_dict(),
            optimizer.state_dict(),
            scheduler.state_dict(),
            loader.state_dict(),
            losses,
            noise.get_state(),
            fw.get_rng_state(),
            random.getstate(),
            np.random.get_state(legacy=False)["state"],
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
