"""What the README says is what happens."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_example_runs_as_shown(tmp_path):
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    assert len(code.strip().splitlines()) <= 20
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}"],
                          cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loss, sine = map(float, re.fullmatch(r"loss (\S+), sin\(1\) is about (\S+)\n", done.stdout).groups())
    assert loss < 0.03 and abs(sine - 0.84) < 0.1
    assert (tmp_path / "sine.safetensors").stat().st_size > 0


def test_ci_runs_the_test_command_of_the_readme():
    commands = re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL)
    assert len(commands) == 2, "one command runs the main job, one passes the tests"
    assert commands[1] in (ROOT / ".ci" / "run").read_text()


def test_extras_of_the_readme_exist():
    project = (ROOT / "pyproject.toml").read_text()
    for names in re.findall(r"^\| (`.*?) \|", README, re.MULTILINE):
        for extra in re.findall(r"`(\w+)`", names):
            assert f"\n{extra} = [" in project, extra
