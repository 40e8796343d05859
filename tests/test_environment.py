"""pyproject.toml, the lock, environment.yml and what is installed agree."""

import tomllib
from importlib.metadata import version
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
CONDA_NAMES = {"pytorch": "torch"}  # conda's name: PyPI's

project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
wanted = [Requirement(r) for r in project["dependencies"] + extras["test"]]
locked = [
    Requirement(line)
    for line in (ROOT / "requirements.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
locked_here = {canonicalize_name(r.name): r for r in locked if not r.marker or r.marker.evaluate()}


def test_environment_yml_asks_for_the_same_packages_and_ranges():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    conda = [Requirement(d) for d in environment["dependencies"] if isinstance(d, str)]
    ranges = {CONDA_NAMES.get(r.name, r.name): r.specifier for r in conda}
    assert ranges.pop("python") == project["requires-python"]
    assert ranges.pop("pip") == ""
    assert ranges == {r.name: r.specifier for r in wanted}
    assert environment["channels"] == ["conda-forge", "nodefaults"]
    assert environment["dependencies"][-1] == {"pip": ["-e ."]}


def test_the_lock_holds_one_exact_version_of_everything_in_range():
    assert all(len(r.specifier) == 1 and next(iter(r.specifier)).operator == "==" for r in locked)
    for requirement in wanted + [Requirement(r) for r in extras["browser"]]:
        pinned = next(iter(locked_here[canonicalize_name(requirement.name)].specifier)).version
        assert pinned in requirement.specifier, requirement


def test_the_lock_leaves_cuda_to_the_wheel_of_torch():
    assert not [r.name for r in locked if r.name.startswith(("nvidia-", "cuda-", "triton"))]


def test_what_is_installed_is_what_the_lock_says():
    for name, requirement in locked_here.items():
        # A local label such as +cpu names a build, not another version.
        assert version(name).split("+")[0] in requirement.specifier, requirement
