"""Run an experiment: `python run.py experiment=summarize_congested`; see `--help`."""

import gc
import sys

from bellman import interruption
from experiments.output import use_lasting_output

if __name__ == "__main__":
    # Imports and frames make millions of objects and hardly any garbage that cycles keep alive.
    gc.set_threshold(100_000, 20, 20)
    use_lasting_output()
    # From here on, before the imports that take seconds, no signal is lost.
    interruption.take_over()
    from experiments.command import main

    status = main()
    interruption.ignore_from_now()
    sys.exit(status)
