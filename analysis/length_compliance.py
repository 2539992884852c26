"""`python -m analysis.length_compliance BANK.parquet OUT.png`: words written by words asked.

The caption stands in OUT.txt.
"""

import sys
from pathlib import Path

from bellman.errors import RunError
from bellman.responses.recorded import read_recorded


def main(arguments: list[str]) -> int:
    """Draw one bank."""
    if len(arguments) != 2:
        print("usage: python -m analysis.length_compliance BANK.parquet OUT.png", file=sys.stderr)
        return 2
    from analysis.figures import length_compliance, style  # noqa: PLC0415 - seconds to import

    try:
        table, metadata = read_recorded(Path(arguments[0]))
    except RunError as error:
        print(error, file=sys.stderr)
        return 1
    style.use_style()
    out = Path(arguments[1])
    figure = length_compliance.draw_bank(table.to_pandas(), metadata)
    style.save(figure, out.parent, out.stem, ("png",))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
