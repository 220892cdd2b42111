"""Which examples would notice wrong gradients: ``python tests/stress/broken_gradients.py [name ...]``.

Runs each example of tests/test_examples.py as the test does, with the gradients that arrive at leaves and at
the inputs of ``grad`` spoilt in turn: all zero; random numbers of the right length; only half of the
parameters, those nearest to the loss, have any. Prints what came out; exits 1 if one of the first two passes
its threshold.
"""

import argparse
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
WAYS = {
    "zero": lambda g, first: np.zeros_like(g),
    "random": lambda g, first: _random(g),
    "half": lambda g, first: np.zeros_like(g) if first else g,
}


def _random(g):
    drawn = np.random.default_rng().standard_normal(g.shape).astype(g.dtype)
    return drawn * (np.linalg.norm(g) / max(np.linalg.norm(drawn), 1e-30)).astype(g.dtype)


def spoil(way):
    """From here on the gradients of this process are wrong."""
    import framework as fw
    from framework.autograd import engine
    from framework.autograd.mode import state

    seen: dict[int, int] = {}
    accumulate, walk = engine.accumulate, engine._walk

    def change(place, g):
        if type(g) not in (np.ndarray, fw.Tensor) or state.batches:
            return g  # inside vmap they are on their way: to leaves, by accumulate
        turn = seen.setdefault(id(place), len(seen))
        if type(g) is np.ndarray:
            return WAYS[way](g, turn >= len(seen) / 2)
        # live: the wrong value, and no derivative
        return fw.as_tensor(WAYS[way](g.detach().numpy(), turn >= len(seen) / 2)) + 0 * g

    engine.accumulate = lambda leaf, g, live: accumulate(leaf, change(leaf, g), live)

    def walked(*args):
        return [change(("input", i), g) for i, g in enumerate(walk(*args))]
    engine._walk = walked


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ways", nargs="+", default=list(WAYS))
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    from test_examples import DATA, EXAMPLES, PROGRAMS, QUICK, learnt

    passed = 0
    for name in options.names or QUICK:
        words = []
        for way in options.ways:
            with tempfile.TemporaryDirectory() as out:
                call = [*PROGRAMS[name].arguments.format(data=DATA, out=out).split(), "--quick"]
                done = subprocess.run(
                    [sys.executable, __file__, "--spoil", way, str(EXAMPLES / f"{name}.py"), *call], cwd=out,
                    timeout=600, capture_output=True, text=True,
                    env={**os.environ, "PYTHONPATH": str(ROOT), "TQDM_DISABLE": "1"})
            enough, last = learnt(name, done.stdout)
            enough = enough and done.returncode == 0
            passed += enough and way != "half"
            said = last if done.returncode == 0 else done.stderr.strip().splitlines()[-1]
            words.append(f"  {way:7}{'PASSES' if enough else 'missed'}  {said[:70]}")
        print("\n".join([name, *words]), flush=True)
    return int(passed > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--spoil"]:
        spoil(sys.argv[2])
        sys.argv = sys.argv[3:]
        sys.path[0] = str(Path(sys.argv[0]).parent)
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        sys.exit(main())
