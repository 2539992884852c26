"""The two commands; see the package."""

import json
import sys
from pathlib import Path

from rich.console import Console

import analysis.interchange
from analysis.interchange.combine import combine, export
from analysis.tables import print_arms
from bellman.errors import RunError


def main(arguments: list[str]) -> int:
    """Run `export RUN` or `combine OUT NAME=PATH...`."""
    try:
        match arguments:
            case ["export", folder]:
                for path in export(Path(folder)):
                    print(path)
            case ["combine", out, *sources] if sources and all("=" in s for s in sources):
                pairs = [source.split("=", 1) for source in sources]
                if Path(out).exists():
                    raise RunError(f"{out} exists; give a new folder")
                combine(Path(out), [(name, Path(path)) for name, path in pairs])
                summary = json.loads((Path(out) / "summary.json").read_text())
                print_arms(summary, Console())
            case _:
                print(analysis.interchange.__doc__, file=sys.stderr)
                return 2
    except (RunError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
