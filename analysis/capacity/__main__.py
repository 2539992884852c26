"""`python -m analysis.capacity FOLDER`: tables, figures and study.json again, from the records."""

import sys
from pathlib import Path

from rich.console import Console

from analysis.capacity.present import study
from bellman.errors import RunError


def main(arguments: list[str]) -> int:
    """Present one run folder of experiment=capacity."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m analysis.capacity FOLDER", file=sys.stderr)
        return 2
    try:
        study(Path(arguments[0]), Console(), draw=True)
    except RunError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
