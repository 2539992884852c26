"""`python -m analysis.obedience BANK.parquet OUT.png`: a response bank's words by words asked."""

import sys
from pathlib import Path

from bellman.engines.simulated.bank_recorded import read_recorded
from bellman.errors import RunError


def main(arguments: list[str]) -> int:
    """Draw one bank."""
    if len(arguments) != 2:
        print("usage: python -m analysis.obedience BANK.parquet OUT.png", file=sys.stderr)
        return 2
    from analysis.figures import obedience, style  # noqa: PLC0415 - seconds to import

    try:
        table, metadata = read_recorded(Path(arguments[0]))
    except RunError as error:
        print(error, file=sys.stderr)
        return 1
    style.use_style()
    obedience.draw_bank(table.to_pandas(), metadata).savefig(arguments[1], dpi=300)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
