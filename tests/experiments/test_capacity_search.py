"""The search of the capacity experiment, with episodes whose latencies are a formula."""

import pandas as pd

from analysis.frames import derive
from bellman.load.schedule import Phase, Schedule
from bellman.settings import read_settings
from bellman.slo import Slo
from experiments.capacity import open_loop
from tests.experiments.conftest import read_config


class FormulaProbe:
    """At r requests a second every answer takes 10 r seconds."""

    slo = Slo(None, None, 10.0)

    def __init__(self) -> None:
        self.rates: list[float] = []

    def run(self, arm, schedule, model, label, *, step, rate_rps):
        self.rates.append(rate_rps)
        intended = [float(second) for second in range(100)]
        frame = pd.DataFrame({"intended_s": intended, "sent_s": intended, "status": "ok"})
        times = frame["intended_s"] + 10.0 * rate_rps
        frame = frame.assign(first_token_s=times, last_token_s=times, output_tokens=1)
        return derive(frame.assign(chunk_gaps_s=None)), pd.DataFrame(), ()


def test_every_multiple_of_the_slo_gets_its_own_limit_and_no_rate_runs_twice():
    overrides = ("study.loads=[0.5,1.2]", "study.slo_scales=[1.0,2.0]", "study.resolution=0.05")
    settings = read_settings(read_config("experiment=capacity", *overrides))
    probe = FormulaProbe()
    schedule = Schedule((), (Phase("congested", 0.0, 100.0, 1.0),), 100.0)
    arm = settings.arms[0]
    assert open_loop(probe, settings.study, arm, 1.0, lambda _: schedule) is None
    assert len(set(probe.rates)) == len(probe.rates)
    for limit_rps in (1.0, 2.0):  # 10 s and 20 s
        below = max(rate for rate in probe.rates if rate <= limit_rps)
        above = min(rate for rate in probe.rates if rate > limit_rps)
        assert above - below <= 0.05
