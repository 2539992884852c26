"""The cell that measures the capacity of an engine: how much it completes when it is saturated."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bellman.admission.accept_all import AcceptAll
from bellman.attempts.log import AttemptLog
from bellman.build import build
from bellman.controllers.none import NoControl
from bellman.engines.base import Control
from bellman.engines.routed.session import RoutedSession
from bellman.episode import Arm
from bellman.errors import RunError
from bellman.load.arrivals.lengths import brings_lengths, lengths_of
from bellman.load.saturation import CapacityMeasurement, CapacitySettings, measure_capacity
from bellman.load.schedule import ScheduledRequest, draw_documents
from bellman.settings import read_episode
from bellman.source import Source
from experiments.cells.base import Watch
from experiments.parts import Parts
from experiments.recorder import Recorder

CAPACITY_STREAM = 2**31
"""Stands where a repeat's number does, for the capacity measurement's own documents."""
CAPACITY_REQUESTS = 100_000
"""More than any engine completes while it is measured."""
SHAPING = ("application", "corpus", "engine", "request_timeout_s", "seed", "signal")
"""The entries of an episode that shape the measurement, too."""


@dataclass(frozen=True)
class CapacityCell:
    """The measurement of one engine by its specification: without control, whatever the arms."""

    values: Mapping[str, Any]
    """The entries of an episode; the arm gives the adaptation, which has nothing to do."""
    capacity: Mapping[str, Any]
    """How it is measured: the entries of `CapacitySettings`."""
    source: Source
    label: str = "capacity"
    axes: Mapping[str, Any] = field(default_factory=dict)

    def specification(self) -> dict[str, Any]:
        """Return what shapes the measurement: of the arrivals, only the lengths of a trace."""
        arrivals = self.values["arrivals"]
        shaping = {key: self.values[key] for key in SHAPING}
        if brings_lengths(build(arrivals, "arrivals")):
            shaping["arrivals"] = arrivals
        return {"capacity": dict(self.capacity), **shaping}

    def run(self, folder: Path, parts: Parts, watch: Watch) -> dict[str, Any]:
        """Saturate the engine; keeps no records of the requests."""
        settings = read_episode(self.values, "none", self.values["arm"])
        how = CapacitySettings(**self.capacity)
        arm = Arm(
            "none",
            Control(NoControl(), AcceptAll(), settings.signal.period_s),
            settings.arm.adaptation,
        )
        corpus = parts.corpus(self.values["corpus"])
        engine = parts.engine(self.values["engine"], self.values["corpus"])
        document_ids = [document.document_id for document in corpus.documents]
        documents = draw_documents(document_ids, CAPACITY_REQUESTS, settings.seed, CAPACITY_STREAM)
        lengths = lengths_of(settings.arrivals, settings.seed, CAPACITY_STREAM)

        async def saturate(recorder: Recorder) -> CapacityMeasurement:
            make_app = parts.app_maker(settings, corpus, engine, recorder.texts)
            async with engine.session(arm.control) as session:
                if isinstance(session, RoutedSession):  # its attempts are no records here
                    session.log = AttemptLog(lambda _: None, 0, arm.name, engine.source)
                app = make_app(session, arm)

                async def send_one(index: int) -> None:
                    prompt_tokens, output_tokens = lengths[index % len(lengths)]
                    scheduled = ScheduledRequest(
                        index,
                        0.0,
                        documents[index % len(documents)],
                        "capacity",
                        prompt_tokens,
                        output_tokens,
                    )
                    record = app.intend(scheduled, 0, arm.name, engine.source)
                    await app.summarize(scheduled, record)
                    if record.status != "ok":
                        raise RunError(
                            f"a request of the capacity measurement failed: {record.reason}"
                        )

                return await measure_capacity(send_one, how)

        watch.begin(self.label, how.warmup_s + how.duration_s)
        with Recorder(folder, engine.source) as recorder:
            measured: CapacityMeasurement = parts.run_coroutine(engine)(saturate(recorder))
        watch.finish(measured.warmup_s + measured.duration_s)
        watch.say(describe(measured, engine.source))
        return {
            **asdict(measured),
            "method": "completions of the saturated engine, closed loop, without control",
            "source": engine.source,
        }


def describe(measured: CapacityMeasurement, source: str) -> str:
    """Say what was measured, and how exact it is."""
    exact = "too few answers for an interval"
    if measured.low_rps is not None and measured.high_rps is not None:
        exact = f"95 % interval {measured.low_rps:.4g} to {measured.high_rps:.4g}"
    return (
        f"capacity: {measured.capacity_rps:.4g} requests/s, {exact}; {measured.completed:,} "
        f"answers in {measured.duration_s:.0f} s ({source})"
    )
