"""Python's own debugger stops wherever a user's code runs: layers, hooks, derivatives, datasets."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = '''
import framework as fw
from framework import nn
from framework.utils.data import DataLoader, Dataset

class Double(fw.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        where = "backward"
        breakpoint()
        return 2 * g

class Layer(nn.Module):
    def forward(self, x):
        where = "forward"
        breakpoint()
        return Double.apply(x)

class Data(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, i):
        if i == 0 and fw.utils.data.get_worker_info() is None:
            where = "dataset"
            breakpoint()
        print("sample", i, flush=True)
        return fw.ones(2)

def hook(module, inputs, output):
    where = "hook"
    breakpoint()

layer = Layer()
layer.register_forward_hook(hook)
for x in DataLoader(Data(), batch_size=2):
    x = x.requires_grad_()
    layer(x).sum().backward()
for x in DataLoader(Data(), batch_size=2, num_workers=1, multiprocessing_context="fork"):
    print("from a worker", x.shape, flush=True)
print("gradient", x.requires_grad)
'''


def run(program, typed=""):
    return subprocess.run([sys.executable, "-c", program], input=typed, capture_output=True, text=True,
                          timeout=300, env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_breakpoints_stop_in_datasets_layers_hooks_and_derivatives():
    done = run(PROGRAM, "p where\ncontinue\n" * 2 + "p where, output.shape\ncontinue\np where, "
                                                    "g.shape\ncontinue\n")
    assert done.returncode == 0, done.stderr[-2000:]
    stops = [line for line in done.stdout.splitlines() if line.startswith("(Pdb) ") and "'" in line]
    assert stops == ["(Pdb) 'dataset'", "(Pdb) 'forward'", "(Pdb) ('hook', (2, 2))", "(Pdb) ('backward', "
                                                                                     "(2, 2))"]
    assert done.stdout.count("sample 0") == 2  # prints of a worker appear, too
    assert "from a worker (2, 2)" in done.stdout


def test_a_debugger_after_the_failure_stands_in_the_users_frame():
    """`pdb.post_mortem` goes up from our check to the line that called with the wrong shape."""
    program = '''
import pdb, sys
import framework as fw

def loss(x):
    wanted = "the user's frame"
    return fw.nn.functional.mse_loss(x, fw.ones(3))

try:
    loss(fw.ones(4))
except Exception as error:
    steps = 0
    frame = error.__traceback__
    while frame.tb_frame.f_code.co_name != "loss":
        frame = frame.tb_next
    pdb.post_mortem(frame)
'''
    done = run(program, "up\n" * 6 + "p 'wanted' in locals() and wanted\ndown\n" * 7 + "quit\n")
    assert '"the user\'s frame"' in done.stdout, done.stdout + done.stderr[-1000:]
