"""`python -m analysis.figures FOLDER...`: draw the figures of run folders for a paper."""

import sys
from pathlib import Path

from analysis.figures import draw
from analysis.frames import load_run
from bellman.errors import RunError


def main(arguments: list[str]) -> int:
    """Draw each folder's figures and print the files."""
    if not arguments or arguments[0].startswith("-"):
        print("usage: python -m analysis.figures FOLDER...", file=sys.stderr)
        return 2
    try:
        for argument in arguments:
            for path in draw(load_run(Path(argument)), paper=True):
                print(path)
    except RunError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
