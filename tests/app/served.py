"""Serves a load that a test writes out, as an episode of an experiment does, in virtual time."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir

from bellman.load.schedule import CONGESTED, Phase, Schedule, ScheduledRequest
from bellman.settings import read_episode, read_settings
from experiments.cells.serve import serve
from experiments.parts import Parts
from experiments.recorder import Recorder

CONF = str(Path(__file__).parents[2] / "conf")


def record(
    folder: Path, times_s: Sequence[float], overrides: Sequence[str], arm: str = "bellman"
) -> list[dict[str, Any]]:
    """Serve requests at those times under an arm and return their lines; all files stay there."""
    folder.mkdir()
    with initialize_config_dir(CONF, version_base="1.3"):
        settings = read_settings(compose("config", overrides=list(overrides)))
    values = settings.episode_values(arm)
    episode = read_episode(values, arm, values["arm"])
    with Parts() as parts, Recorder(folder, "simulated") as recorder:
        corpus = parts.corpus(values["corpus"])
        engine = parts.engine(values["engine"], values["corpus"])
        documents = [document.document_id for document in corpus.documents]
        requests = tuple(
            ScheduledRequest(number, time_s, documents[number % 7], CONGESTED)
            for number, time_s in enumerate(times_s)
        )
        end_s = times_s[-1] + 1.0
        schedule = Schedule(requests, (Phase(CONGESTED, 0.0, end_s, 1.0),), end_s)
        try:
            serve(
                episode,
                schedule,
                repeat=0,
                parts=parts,
                corpus=corpus,
                engine=engine,
                recorder=recorder,
            )
        finally:
            recorder.requests.close()
    return lines(folder, "requests")


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the records of a file; none where there is no such file."""
    path = folder / f"{name}.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]
