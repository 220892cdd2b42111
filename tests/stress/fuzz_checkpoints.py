"""Feed damaged checkpoints to the reader: only CheckpointError may come out, and little memory go in.

    python tests/stress/fuzz_checkpoints.py --files 1000000 --seed 1

Each file is made from a sound one: bytes flipped, cut, spliced and repeated, or the header's and the
structure's JSON edited and all checksums set right again, so that the damage gets past them. File i of a
seed is always the same; a failure prints how to repeat it and exits 1.
"""

import argparse
import io
import json
import mmap
import os
import random
import resource
import sys
import tempfile
import time
import traceback
import zlib
from collections import Counter, OrderedDict
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from copy import deepcopy
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import framework as fw
from framework.errors import CheckpointError
from framework.io import load, load_safetensors, save, save_safetensors

MEMORY = 64 << 20
SLOW = 2.0  # seconds that no small file may take
HOSTILE = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    7,
    64,
    65,
    255,
    1 << 31,
    1 << 40,
    1 << 61,
    (1 << 62) - 1,
    1 << 62,
    1 << 63,
    1 << 64,
    10**400,
    -(1 << 40),
    0.5,
    -0.0,
    1e308,
    "",
    "w",
    "model.w",
    "cuda:0",
    "mars",
    "nan",
    "inf",
    "0x",
    "F32",
    "BF16",
    "U16",
    "C64",
    "BOOL",
    "tensor",
    "dict",
    "tuple",
    "int",
    "view",
    "\x00",
    "é",
    [],
    [[]],
    [0],
    [1, 1],
    [-1],
    [1 << 40, 1 << 40],
    [0, 1 << 61, 1 << 61],
    {},
    {"tensor": "model.w"},
    {"int": "0x10"},
    {"tuple": []},
    {"dict": [["a", 1]]},
    {"bytes": "AAAA"},
    {"float": "inf"},
    {"view": {"dtype": "float32", "shape": [1 << 40], "offset": 0, "strides": [0]}},
)


def sound_files():
    """Small files with every feature of the format, and their readers."""
    w = fw.nn.Parameter(fw.arange(12).float().reshape(3, 4))
    data = OrderedDict(
        model={"w": w, "column": w.detach()[:, 1], "t": w.detach().t(), "again": w},
        flags=fw.tensor([True, False]),
        c=fw.tensor([1 + 2j, 3j]),
        wide=fw.ones(1).expand(9),
        slices=[fw.arange(8)[:5], fw.arange(8)[2:]],
        empty=fw.zeros(0, 3),
        step=3,
        lr=0.5,
        big=1 << 70,
        odd=float("nan"),
        pair=(1, [None, True]),
        raw=b"bytes",
        name="é",
        z=1 - 1j,
        kind=fw.float16,
        place=fw.device("cuda:1"),
    )
    files = []
    for obj in (
        data,
        {"w": w, "s": 1},
        [1, {"a": (2.5,)}],
        OrderedDict(weight=fw.ones(2, 2), bias=fw.zeros(2)),
    ):
        file = io.BytesIO()
        save(obj, file)
        files.append(file.getvalue())
    file = io.BytesIO()
    save_safetensors({"w": w, "flags": fw.tensor([True])}, file, {"note": "hi"})
    files.append(file.getvalue())
    file = io.BytesIO()
    save(fw.nn.ReLU(), file)
    files.append(file.getvalue())
    golden = Path(__file__).resolve().parents[1] / "golden"
    return files + [path.read_bytes() for path in sorted(golden.glob("*.*"))]


# -- mutations -------------------------------------------------------------------------------------


def flip(data, r):
    data = bytearray(data)
    for _ in range(r.choice((1, 1, 2, 8))):
        data[r.randrange(len(data))] ^= 1 << r.randrange(8)
    return bytes(data)


def cut(data, r):
    return data[:r.randrange(len(data))]


def splice(data, r):
    a, b, c = (r.randrange(len(data) + 1) for _ in range(3))
    n = r.choice((1, 2, 8, 64))
    return data[:a] + data[b:b + n] + data[c if r.random() < 0.3 else a:]


def overwrite(data, r):
    at, n = r.randrange(len(data)), r.choice((1, 2, 4, 8))
    return data[:at] + r.choice((b"\0" * n, b"\xff" * n, r.randbytes(n))) + data[at + n:]


BYTES = (flip, cut, splice, overwrite)


def hostile(r):
    """A value that does not belong; a copy, since it may be edited in its turn."""
    return deepcopy(r.choice(HOSTILE))


def edit(tree, r):
    """Change one random place of a JSON tree, in place."""
    at, steps = tree, r.randrange(1, 12)
    for _ in range(steps):
        keys = list(at) if isinstance(at, dict) else range(len(at))
        if not keys:
            return
        key = r.choice(keys)
        if isinstance(at[key], (dict, list)) and at[key] and r.random() < 0.85:
            at = at[key]
            continue
        choice = r.random()
        if choice < 0.15:
            del at[key]
        elif choice < 0.3 and isinstance(at, dict):
            at[
                r.choice(("view", "alias", "class", "complex", "device", "requires_grad", "x", "persistent"))
            ] = hostile(r)
        elif choice < 0.45 and type(at[key]) is int:
            at[key] += r.choice((-1, 1, 4, -4, 64, 1 << 32))
        elif choice < 0.55 and isinstance(at, list):
            at.append(r.choice(at))
        else:
            at[key] = hostile(r)
        return


def tensors(tree):
    """The references to tensors in a structure."""
    if isinstance(tree, dict) and "tensor" in tree:
        yield tree
    elif isinstance(tree, (dict, list)):
        for x in tree.values() if isinstance(tree, dict) else tree:
            yield from tensors(x)


SIZES = (0, 1, 2, 3, 5, 8, 64, 1 << 31, 1 << 32, 1 << 61, 1 << 62, (1 << 63) - 1)


def window(reference, r):
    """Make a view of a tensor that may reach anywhere."""
    ndim = r.randrange(4)
    steps = [r.choice((0, 1, 4, 8, 12, -1, -4, r.choice(SIZES), -r.choice(SIZES))) for _ in range(ndim)]
    reference["view"] = {"dtype": r.choice(("float32", "uint8", "int64", "complex128", "bool")),
                         "shape": [r.choice(SIZES[:7] if r.random() < 0.7 else SIZES) for _ in range(ndim)],
                         "offset": r.choice((0, 0, 4, 1, -4, *SIZES)), "strides": steps}


def parts(data):
    n = int.from_bytes(data[:8], "little")
    if n > len(data) or data[8:9] != b"{":
        return None
    return data[8:8 + n], data[8 + n:]


def deep(data, r):
    """Edit the header, the structure or the data, and set every checksum right."""
    found = parts(data)
    if found is None:
        return flip(data, r)
    header, body = json.loads(found[0]), found[1]
    metadata = header.get("__metadata__", {})
    kind = r.random()
    if kind < 0.6 and "structure" in metadata:
        structure = [json.loads(metadata["structure"])]
        references = list(tensors(structure))
        if references and r.random() < 0.4:
            window(r.choice(references), r)
        else:
            for _ in range(r.choice((1, 1, 1, 2, 4))):
                edit(structure, r)
        text = json.dumps(structure[0] if structure else None)
        metadata["structure"] = (
            r.choice(BYTES)(text.encode(), r).decode("latin-1") if r.random() < 0.1 else text
        )
    elif kind < 0.9:
        for _ in range(r.choice((1, 1, 2))):
            edit(header, r)
    else:
        body = r.choice(BYTES)(body, r) if body else r.randbytes(3)
    return sealed(header, body, b'"checksum"' in found[0][:40])


def sealed(header, body, first_version):
    """A file of these parts with right checksums, as far as the header still has places for them."""
    metadata = header.pop("__metadata__", None)
    if isinstance(metadata, dict):
        metadata.pop("seal", None)
        metadata.pop("checksum", None)
        key = "checksum" if first_version else "seal"
        if "blocks" in metadata and not first_version:
            metadata["blocks"] = "4194304:" + (f"{zlib.crc32(body):08x}" if body else "")
        header = {"__metadata__": {key: "crc32:00000000", **metadata}, **header}
    elif metadata is not None:
        header["__metadata__"] = metadata
    raw = json.dumps(header, separators=(",", ":")).encode()
    whole = len(raw).to_bytes(8, "little") + raw
    crc = zlib.crc32(whole + body if first_version else whole)
    return whole.replace(b"crc32:00000000", b"crc32:%08x" % crc, 1) + body


def text_edit(data, r):
    """Damage the header as text, and set its length and checksums right."""
    found = parts(data)
    if found is None:
        return overwrite(data, r)
    raw, body = r.choice(BYTES)(found[0], r), found[1]
    start = b'{"__metadata__":{"seal":"crc32:'
    whole = len(raw).to_bytes(8, "little") + raw
    if raw.startswith(start):
        at = 8 + len(start)
        whole = whole[:at] + b"00000000" + whole[at + 8:]
        whole = whole[:at] + b"%08x" % zlib.crc32(whole) + whole[at + 8:]
    return whole + body


def mutant(files, seed, i):
    """File number ``i`` of a seed."""
    r = random.Random(seed << 40 | i)
    data = r.choice(files)
    kind = r.random()
    if kind < 0.2:
        for _ in range(r.choice((1, 1, 2, 4))):
            data = r.choice(BYTES)(data, r) if data else data
        return data, r
    return (deep if kind < 0.85 else text_edit)(data, r), r


# -- the check -------------------------------------------------------------------------------------


def touch(x):
    """Read the first and last element of every tensor: outside of its memory this would crash."""
    if isinstance(x, fw.Tensor):
        array = x._array
        if array.size:
            array[(0,) * array.ndim], array[(-1,) * array.ndim]
    elif isinstance(x, (dict, list, tuple)):
        for v in x.values() if isinstance(x, dict) else x:
            touch(v)


def read(data, r, folder):
    """Load a file in one of the ways there are; "loaded" or "refused"."""
    way = r.random()
    try:
        if way < 0.02:
            path = Path(folder) / f"{os.getpid()}.ckpt"
            path.write_bytes(data)
            touch(load(path, map_location="cpu", mmap=True, verify=way < 0.01))
        elif way < 0.2:
            touch(load_safetensors(io.BytesIO(data)))
        else:
            touch(load(io.BytesIO(data), map_location="cpu"))
    except CheckpointError:
        return "refused"
    return "loaded"


def run(seed, first, last, step, folder):
    """Files first, first + step, ...: (counts, slowest, bytes of memory gained, failure text or None)."""
    files = sound_files()
    for data in files:
        read(data, random.Random(1), folder)
    with open(Path(folder) / f"{first % step}.now", "w+b") as file:
        file.truncate(8)
        now = mmap.mmap(file.fileno(), 8)  # which file was read, should the process crash
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    counts, slowest, i = Counter(), 0.0, first
    for i in range(first, last, step):
        now[:8] = i.to_bytes(8, "little")
        data, r = mutant(files, seed, i)
        start = time.perf_counter()
        try:
            counts[read(data, r, folder)] += 1
        except BaseException as error:
            text = f"file {i} of seed {seed} ({len(data)} bytes): {error!r}\n{traceback.format_exc()}"
            return counts, slowest, 0, text
        slowest = max(slowest, time.perf_counter() - start)
    gained = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    return counts, slowest, gained, None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="start at this file, to repeat a failure")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(args.jobs) as pool:
        results = [pool.submit(run, args.seed, args.first + k, args.first + args.files, args.jobs, folder)
                   for k in range(args.jobs)]
        try:
            results = [result.result() for result in results]
        except BrokenProcessPool:
            at = sorted(int.from_bytes(path.read_bytes(), "little") for path in Path(folder).glob("*.now"))
            sys.exit(
                f"a process crashed at one of the files {at} of seed {args.seed}; repeat it with --first"
            )
    seconds = time.perf_counter() - start
    counts = sum((c for c, _, _, _ in results), Counter())
    slowest, gained = (max(r[k] for r in results) for k in (1, 2))
    failures = [text for _, _, _, text in results if text]
    print(
        f"seed {args.seed}: {sum(counts.values())} files, {counts['refused']} refused, "
        f"{counts['loaded']} loaded, {len(failures)} failures; {seconds:.0f} s, "
        f"{sum(counts.values()) / seconds:.0f} files/s; slowest {slowest * 1000:.0f} ms; "
        f"memory grew by {gained / 2**20:.1f} MiB at most"
    )
    for text in failures:
        print(text)
    sys.exit(bool(failures) or gained > MEMORY or slowest > SLOW)


if __name__ == "__main__":
    main()
