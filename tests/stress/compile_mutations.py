"""The rules of ``fw.compile`` broken one by one: ``python tests/stress/compile_mutations.py [word ...]``.

Each mutation (``compile_mutations.txt``) is a line of the package taken out or turned round in a copy of it,
with which the tests of compiled functions have to fail; where a line says why nothing can be seen of it,
it is counted and not tried, but with ``--all``. ``--native BUILD`` breaks the lines of the native sources,
too: BUILD is a folder in which CMake and Ninja have built the module, whose commands compile the one file
again; nothing in it is changed. Prints what survives; exits 1 if anything does, if a line cannot be compiled,
or if the tests fail without a mutation.
"""

import argparse
import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ("tests/test_compile_in_place.py", "tests/test_compile_matching.py", "tests/test_compile_rules.py",
         "tests/test_compile_changes.py", "tests/test_compile.py")


def mutations() -> list[tuple[str, str, str, str]]:
    """(file, what stands there, what stands there instead, why nothing is to be seen of that), as the text
    beside this file has them."""
    found: list[tuple[str, str, str, str]] = []
    text = Path(__file__).with_suffix(".txt").read_text()
    for part in text.split("\n# ")[1:]:
        name, *lines = part.splitlines()
        old, new, why = ["\n".join(line[2:] for line in lines if line[:1] == sign) for sign in "-+="]
        found.append((name, old, new, why))
    return found


def copied_package(folder: Path) -> Path:
    """The package in a folder of its own."""
    shutil.copytree(ROOT / "framework", folder / "framework", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "benchmarks"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def passes(folder: Path, tests: list[str], native: str | None = None) -> bool:
    """Whether the tests pass with the package that lies there."""
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    if native is not None:
        env["FRAMEWORK_NATIVE_PATH"] = native
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        return subprocess.run(command, cwd=folder, env=env, capture_output=True, timeout=600).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def mutated(text: str, old: str, new: str, where: str) -> str:
    if old not in text:
        raise SystemExit(f"{where}: the mutation is out of date: {old!r}")
    return text.replace(old, new, 1)


def made(command: str, source: Path, folder: Path) -> Path:
    """The object of a source, by the command that compiles another."""
    words, made = shlex.split(command), folder / f"{source.stem}.o"
    for option, path in ("-o", made), ("-c", source), ("-MF", f"{made}.d"):
        if option in words:
            words[words.index(option) + 1] = str(path)
    subprocess.run([*words, f"-I{ROOT / 'framework/_native'}"], check=True, capture_output=True)
    return made


@functools.cache
def made_one_by_one(command: str, texts: tuple[str, ...], folder: Path) -> dict[str, str]:
    """The objects of the sources of a unit."""
    folder.mkdir()
    return {t: str(made(command, ROOT / "framework/_native" / t, folder)) for t in texts}


def parts(build: Path, folder: Path, name: str) -> tuple[str, dict[str, str], list[str]]:
    """The command that compiles a native source, the objects that it is linked with by their sources (those
    of a unit that is compiled as one are made one by one), and the command that links."""
    sets = [s for s in ("avx512", "avx2", "baseline") if next(build.glob(f"{s}.*"), None)]
    library = next(build.glob(f"{sets[0]}.*")).name
    *commands, link = subprocess.run(["ninja", "-t", "commands", library], cwd=build, capture_output=True,
                                     text=True, check=True).stdout.splitlines()
    for command in commands:
        words = shlex.split(command)
        source = Path(words[-1])
        if str(source).endswith(f"/{name}"):
            return command, {name: words[words.index("-o") + 1]}, shlex.split(link)
        texts = [] if source.parent.name != "units" else re.findall('#include "(.*)"', source.read_text())
        if name in texts:
            whole = words[words.index("-o") + 1]
            objects = made_one_by_one(command, tuple(texts), folder / f"parts of {source.stem}")
            words = shlex.split(link)
            at = words.index(whole)
            words[at:at + 1] = objects.values()
            return command, objects, words
    raise SystemExit(f"{build} compiles no {name}")


def compiled(build: Path, folder: Path, name: str, text: str) -> str:
    """The folder of a module in which this file has that text."""
    command, objects, link = parts(build, folder, name)
    changed = folder / Path(name).name
    changed.write_text(text)
    instead = {objects[name]: str(made(command, changed, folder))}
    out = folder / "native"
    out.mkdir(exist_ok=True)
    words = [instead.get(w, w) for w in link if w not in (":", "&&")]
    words[words.index("-o") + 1] = str(out / words[words.index("-o") + 1])
    subprocess.run(words, cwd=build, check=True, capture_output=True)
    for other in build.glob("processor*.so"):
        shutil.copy(other, out)
    return str(out)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="mutations whose file or line has one of these")
    parser.add_argument("--native", type=Path, help="the folder of a build")
    parser.add_argument("--only-native", action="store_true", help="no others than those")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="others than those of compiled functions")
    parser.add_argument("--skip", type=int, default=0, help="how many of the mutations were tried before")
    parser.add_argument("--all", action="store_true", help="also those of which nothing is to be seen")
    given = parser.parse_args()
    rows = [(name, old, new, why) for name, old, new, why in mutations()
            if (given.native if name.startswith("_native/") else not given.only_native)
            and (not given.words or any(w in name or w in old for w in given.words))]
    for name, old, new, why in rows:  # that none is out of date, before the long part
        mutated((ROOT / "framework" / name).read_text(), old, new, name)
        if why and not given.all:
            print(f"unseen   {name}: {old.splitlines()[0][:90]!r}: {why}")
    unseen = 0 if given.all else sum(bool(why) for *_, why in rows)
    rows = [row for row in rows if given.all or not row[3]][given.skip:]
    survivors, broken = [], 0
    with tempfile.TemporaryDirectory() as place:
        folder = copied_package(Path(place))
        if not passes(folder, given.tests, given.native and str(given.native)):
            print("the tests fail without a mutation")
            return 1
        for name, old, new, _ in rows:
            start = time.perf_counter()
            path = folder / "framework" / name
            text = path.read_text()
            changed = mutated(text, old, new, name)
            if name.startswith("_native/"):
                try:
                    module = compiled(given.native, folder, name.removeprefix("_native/"), changed)
                except subprocess.CalledProcessError as error:
                    broken += 1
                    print(f"NOT TRIED {name}: {old.splitlines()[0][:90]!r} does not compile: "
                          f"{error.stderr.decode()[:300]}", flush=True)
                    continue
                alive = passes(folder, given.tests, module)
            else:
                path.write_text(changed)
                alive = passes(folder, given.tests)
                path.write_text(text)
            if alive:
                survivors.append((name, old))
            print(f"{'SURVIVES' if alive else 'killed  '} {name}: {old.splitlines()[0][:90]!r} "
                  f"({time.perf_counter() - start:.0f} s)", flush=True)
    print(f"{len(rows) - len(survivors) - broken} of {len(rows)} killed, {broken} do not compile, nothing to "
          f"be seen of {unseen}")
    for name, old in survivors:
        print(f"  survives: {name}: {old!r}")
    return bool(survivors or broken)


if __name__ == "__main__":
    sys.exit(main())
