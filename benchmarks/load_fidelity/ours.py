"""One open-loop episode of ours as a process: what `run.py` does between set-up and analysis.

Application, driver, client and records are the ones of every experiment. Prints the pacing.
"""

import argparse
import json
import sys
from pathlib import Path

from hydra import compose, initialize_config_dir
from rich.console import Console

from experiments.execute import execute

CONF = Path(__file__).parents[2] / "conf"


def main() -> None:
    """Send `--rate` requests a second for `--seconds` to `--url`; records go to `--out`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--process", default="constant")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    overrides = [
        "engine=openai",
        f"engine.base_url={given.url}",
        "engine.gateway=false",
        "arrivals=steady",
        f"arrivals.process={given.process}",
        f"arrivals.rate_rps={given.rate}",
        "arrivals.load=null",
        "arrivals.warmup_s=0",
        f"arrivals.duration_s={given.seconds}",
        "arm=[none]",
        "repeats=1",
        "drain_s=30",
        "quality.random_draws=0",
        f"folder={given.out}",
        "energy=none",
    ]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", overrides=overrides)
    folder = execute(config, Console(quiet=True), draw=False)
    (episode,) = json.loads((folder / "episodes.json").read_text())
    json.dump(episode["pacing"], sys.stdout)


if __name__ == "__main__":
    main()
