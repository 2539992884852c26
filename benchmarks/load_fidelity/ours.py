"""One open-loop episode of ours as a process: what `run.py` does between set-up and analysis.

Application, driver, client and records are the ones of every experiment. Prints the pacing.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from hydra import compose, initialize_config_dir

from bellman.engines.runtime import running
from bellman.episode import EpisodePlan, run_episode
from bellman.records import write_json
from bellman.settings import read_settings
from experiments.recorded_episode import app_maker, meter
from experiments.recorder import Recorder

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
        "controller=none",
        "energy=none",
    ]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        settings = read_settings(compose("config", overrides=overrides))
    corpus = settings.corpus.load()
    engine = settings.engine.create(corpus)
    ids = [document.document_id for document in corpus.documents]
    schedule = settings.arrivals.schedule(None, ids, settings.run.seed, 0)
    given.out.mkdir(parents=True)
    with Recorder(given.out) as recorder, running(engine) as run_coroutine:
        plan = EpisodePlan(
            repeat=0,
            arm=settings.baseline,
            schedule=schedule,
            load_model=settings.load_model,
            poll_period_s=None,
            timeline_period_s=1.0,
            drain_s=30.0,
        )
        result = run_coroutine(
            run_episode(
                engine,
                plan,
                make_app=app_maker(settings, corpus, engine, recorder.texts),
                make_meter=lambda session: meter(settings, session),
                writer=recorder.requests,
                on_row=recorder.add_row,
            )
        )
    write_json({"baseline": settings.baseline.name, "treatments": []}, given.out / "arms.json")
    json.dump(asdict(result.pacing), sys.stdout)


if __name__ == "__main__":
    main()
