"""Print the requirements of pyproject.toml at exactly their lower bounds, as constraints for pip.

Usage: python .ci/lower_bounds.py > lowest.txt && pip install -c lowest.txt -e ".[plot]"

All requirements and those of all extras, one a line. What they ask for in turn is left to pip.
"""

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
_BOUND = re.compile(r"(?P<name>[\w.-]+)>=(?P<version>\d+(?:\.\w+)*)")


def lower_bounds(pyproject: str) -> list[str]:
    """Return ``name==version`` of each requirement in the text of a pyproject.toml.

    Raises
    ------
    ValueError
        If a requirement is not written as ``name>=version``, or has two different bounds.
    """
    project = tomllib.loads(pyproject)["project"]
    bounds: dict[str, str] = {}
    for requirement in sum(project["optional-dependencies"].values(), project["dependencies"]):
        if requirement.startswith(project["name"] + "["):
            continue
        bound = _BOUND.fullmatch(requirement)
        if bound is None:
            raise ValueError(f"{requirement!r} should be written as name>=version")
        if bounds.setdefault(bound["name"], bound["version"]) != bound["version"]:
            raise ValueError(f"{bound['name']} has two lower bounds")
    return [f"{name}=={version}" for name, version in sorted(bounds.items())]


if __name__ == "__main__":
    try:
        print(*lower_bounds(PYPROJECT.read_text(encoding="utf-8")), sep="\n")
    except ValueError as error:
        sys.exit(f"{PYPROJECT}: {error}")
