"""Write docs/licences.md: the licence of every direct dependency, as its package's metadata say it.

    python -m scripts.licences

Run where everything is installed that the table is to be sure of; what is not installed keeps the
line that the table has.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "licences.md"
LONGEST_NAME = 40
"""Some metadata hold the whole text where the licence's name belongs."""
HEAD = """\
# Licences of the dependencies

As the metadata of the packages say it; `python -m scripts.licences` writes this page and a test
compares it with what is installed. Nothing that the default install brings along, directly or
not, names a GPL; one package, which `aclsum` brings, names no licence: `sienna`.
"""


def requirements() -> dict[str, list[str]]:
    """Return the names of the direct dependencies, by extra; the default install's under ""."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    return {extra: [Requirement(line).name for line in lines] for extra, lines in groups.items()}


def installed(name: str) -> Distribution | None:
    """Return an installed package, or None."""
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def licence(package: Distribution) -> str | None:
    """Return the licence that a package names: expression, then classifier, then free text."""
    metadata = package.metadata
    if expression := metadata.get("License-Expression"):
        return str(expression)
    classifiers = [
        classifier.rsplit(" :: ", 1)[-1]
        for classifier in metadata.get_all("Classifier") or []
        if classifier.startswith("License :: ")
    ]
    named = ", ".join(classifiers) or (metadata.get("License") or "").split("\n")[0].strip()
    return named if named and len(named) <= LONGEST_NAME else None


def everything_below(names: Iterable[str]) -> Iterator[Distribution]:
    """Yield the installed packages with these names, and all that they bring along here."""
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = canonicalize_name(waiting.pop())
        package = None if name in seen else installed(name)
        seen.add(name)
        if package is None:
            continue
        yield package
        needed = (Requirement(line) for line in package.requires or [])
        waiting += [
            item.name for item in needed if not item.marker or item.marker.evaluate({"extra": ""})
        ]


def rows(page: str) -> dict[tuple[str, str], str]:
    """Read (extra, package) and licence back from the page."""
    found = re.findall(r"^\| (\S+) \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    return {
        (extra, package): named
        for package, extra, named in found
        if package not in ("package", "---")
    }


def render(known: dict[tuple[str, str], str]) -> str:
    """Return the page; `known` has the licences of what is not installed."""
    lines = [HEAD, "| package | extra | licence |", "| --- | --- | --- |"]
    for extra, names in requirements().items():
        for name in names:
            package = installed(name)
            named = licence(package) if package else known.get((extra, name))
            lines.append(f"| {name} | {extra} | {named or 'not stated'} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(rows(PAGE.read_text() if PAGE.exists() else "")))
