"""Look on while a run goes on: `python -m analysis.watch FOLDER [--port N | --terminal]`."""

import argparse
import sys
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from analysis.watch import page, terminal
from bellman.errors import RunError


def main(arguments: list[str] | None = None) -> int:
    """Run the command until it is ended."""
    parser = argparse.ArgumentParser(prog="python -m analysis.watch", description=__doc__)
    parser.add_argument("folder", type=Path, help="of a run; it need not be there yet")
    parser.add_argument("--port", type=int, default=8080, help="of the page; 0 takes any free one")
    parser.add_argument("--terminal", action="store_true", help="show it here, and no page")
    given = parser.parse_args(arguments)
    if not 0 <= given.port < 65536:
        parser.error(f"--port={given.port}: must be 0 to 65535")
    with suppress(KeyboardInterrupt):
        try:
            if given.terminal:
                terminal.show(given.folder, Console())
            else:
                page.serve(given.folder, given.port)
        except RunError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
