"""Copy finished runs into a local MLflow store: `python -m analysis.track FOLDER...`."""

import argparse
import sys
from pathlib import Path

from analysis.track.entries import entries_of
from analysis.track.store import Store
from bellman.errors import RunError


def main(arguments: list[str] | None = None) -> int:
    """Copy each run; one that cannot be copied is named, and the others are copied all the same."""
    parser = argparse.ArgumentParser(prog="python -m analysis.track", description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER", help="of a run")
    parser.add_argument(
        "--store", type=Path, default=Path("mlflow.db"), help="SQLite file (default: mlflow.db)"
    )
    given = parser.parse_args(arguments)
    status = 0
    try:
        store = Store(given.store)
        for folder in given.folders:
            try:
                print(f"{folder}: {store.add(entries_of(folder))}")
            except RunError as error:
                print(error, file=sys.stderr)
                status = 1
    except (RunError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"browse: mlflow ui --backend-store-uri sqlite:///{given.store}")
    return status


if __name__ == "__main__":
    sys.exit(main())
