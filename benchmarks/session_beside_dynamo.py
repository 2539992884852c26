"""A whole simulated session beside NVIDIA's Dynamo mocker: the same loads, timing and limits.

    python -m benchmarks.session_beside_dynamo --python dynamo/bin/python   # has ai-dynamo 1.6.1

Ours is all of an episode: the loop in virtual time, driver, application, timeline, and records on
disk. Theirs is the replay of a trace without records of its requests. Both have the mocker's
timing function. Processor time of both, all threads together, since the machine may be shared; the
two take turns, and the medians are shown.
"""

import argparse
import time
from dataclasses import fields
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from hydra import compose, initialize_config_dir
from rich.console import Console
from rich.table import Table

from bellman.corpus.base import Corpus
from bellman.engines.simulated.engine import RunningSimulatedEngine, SimulatedEngine
from bellman.engines.simulated.fit_batches import NoAnswers
from bellman.engines.simulated.profile import Profile
from bellman.engines.simulated.segment import Limits
from bellman.load.schedule import CONGESTED, Phase, Schedule, ScheduledRequest
from bellman.settings import Settings, read_settings
from benchmarks.beside_dynamo import BLOCK, CASES, MockerSteps, MockerTiming, Requests, theirs
from benchmarks.whole_run import CONF, run_whole

LONGEST_TOKENS = 8192


class MockerProfile(Profile):
    """A profile with the mocker's timing in place of its own."""

    def steps(  # type: ignore[override]
        self, prefill_tokens: int, prefill_pairs: int, sequences: int, kv_tokens: int
    ) -> MockerSteps:
        """Return the cost of a step."""
        timing = MockerTiming(self.kv_blocks * BLOCK, their_charges=False)
        return timing.steps(prefill_tokens, prefill_pairs, sequences, kv_tokens)


def engine_of(settings: Settings, limits: Limits) -> RunningSimulatedEngine:
    """Return the simulated engine with the mocker's limits and timing, and no front end."""
    own = settings.engine.profile
    values = {entry.name: getattr(own, entry.name) for entry in fields(Profile)}
    values |= {"kv_blocks": limits.kv_blocks, "front_end": type(own.front_end)(0.0, 0.0)}
    config = SimulatedEngine(
        profile=MockerProfile(**values),
        max_num_seqs=limits.max_num_seqs,
        max_num_batched_tokens=limits.max_num_batched_tokens,
        kv_blocks=limits.kv_blocks,
        block_size=limits.block_size,
        max_model_len=LONGEST_TOKENS,
    )
    return config.with_bank(NoAnswers())


def schedule_of(requests: Requests, corpus: Corpus) -> Schedule:
    """Return the load as a schedule whose lengths are forced."""
    document_id = corpus.documents[0].document_id
    end_s = 1e-3 * requests[-1][0] + 1.0
    scheduled = tuple(
        ScheduledRequest(
            number, round(1e-3 * arrival_ms, 6), document_id, CONGESTED, prompt, output
        )
        for number, (arrival_ms, prompt, output) in enumerate(requests)
    )
    return Schedule(scheduled, (Phase(CONGESTED, 0.0, end_s, len(requests) / end_s),), end_s)


def main() -> None:
    """Print processor time by load."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--python", required=True, help="interpreter that has ai-dynamo")
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        settings = read_settings(compose("config"))
    corpus = settings.corpus.load()
    table = Table(title="requests a second of processor time", title_justify="left")
    for name in ("load", "our whole session", "Dynamo's replay", "ratio"):
        table.add_column(name, justify="left" if name == "load" else "right")
    for name, draw, limits in CASES:
        requests = draw(options.requests)
        schedule = schedule_of(requests, corpus)
        speeds: list[tuple[float, float]] = []
        for _ in range(options.repeats):
            begin_s = time.process_time()
            engine = engine_of(settings, limits)
            with TemporaryDirectory() as folder:
                run_whole(Path(folder), settings, corpus, schedule, engine=engine, arm="none")
            taken_s = time.process_time() - begin_s
            other_s = theirs(options.python, requests, limits, per_request=False).processor_s
            speeds.append((len(requests) / taken_s, len(requests) / other_s))
        mine, other = (median(column) for column in zip(*speeds, strict=True))
        table.add_row(name, f"{mine:,.0f}", f"{other:,.0f}", f"{mine / other:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
