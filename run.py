"""Run an experiment: `python run.py experiment=summarize_congested`; see `--help`."""

import sys

from bellman import interruption
from experiments.output import use_lasting_output

if __name__ == "__main__":
    use_lasting_output()
    # From here on, before the imports that take seconds, no signal is lost.
    with interruption.handled():
        from experiments.command import main

        sys.exit(main())
