"""Writes a run folder of a small deterministic queue, in the format of the `compare` experiment.

One server, first come first served; a request of `words` takes (0.1 s + 1.6 ms x words) / speed, so
that its capacity at 250 words is 2 x speed requests a second. Everything is a formula of the
request's number: two calls write the same bytes, and expected values can be computed by hand.
"""

import json
import math
from bisect import bisect_right
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bellman import records, timeline
from bellman.energy.base import EnergyReading, EnergyReport
from bellman.load.schedule import Phase, Schedule, ScheduledRequest

DEFAULT_WORDS = 250
GOLDEN = (math.sqrt(5) - 1) / 2
IDLE_W, BUSY_W = 120.0, 600.0


@dataclass(frozen=True)
class Synthetic:
    repeats: int = 3
    arms: tuple[str, ...] = ("none", "bellman")
    """Arms called `bellman...` shorten, the others do not."""
    overload: float = 1.19
    speed: float = 1.0
    phases: tuple[tuple[str, float, float], ...] = (
        ("warmup", 20.0, 0.5),
        ("calm", 40.0, 0.5),
        ("congested", 100.0, math.nan),
        ("recovery", 60.0, 0.5),
    )
    """Name, seconds, share of the capacity (NaN: the overload)."""
    drain_s: float = 60.0
    source: str = "simulated"
    energy_source: str | None = "simulated"
    energy_drift: float = 0.0
    """Share by which the second opinion on the joules differs from the counter."""
    quality: bool = True
    invalid_reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    reject_every: dict[str, int] = field(default_factory=dict)
    """Arm -> every n-th request of the congested phase is rejected."""
    fail_all: bool = False
    load_model: str = "open_loop.OpenLoop"
    paper_arm: str | None = None
    """None: the last one."""

    @property
    def capacity_rps(self) -> float:
        return self.speed / service_s(DEFAULT_WORDS, 1.0)


def service_s(words: int, speed: float) -> float:
    return (0.1 + 0.0016 * words) / speed


def phase_rows(run: Synthetic) -> list[dict]:
    rows, start_s = [], 0.0
    for name, seconds, share in run.phases:
        rate_rps = run.capacity_rps * (run.overload if math.isnan(share) else share)
        rows.append(
            {"name": name, "start_s": start_s, "end_s": start_s + seconds, "rate_rps": rate_rps}
        )
        start_s += seconds
    return rows


def schedule_rows(run: Synthetic, repeat: int) -> list[dict]:
    """Evenly spread arrivals, each moved within its slot by a golden-ratio sequence."""
    rows: list[dict] = []
    for phase in phase_rows(run):
        count = round((phase["end_s"] - phase["start_s"]) * phase["rate_rps"])
        for k in range(count):
            jitter = (GOLDEN * (k + 1) + 0.37 * repeat) % 1.0
            rows.append(
                {
                    "repeat": repeat,
                    "request_id": len(rows),
                    "intended_s": phase["start_s"] + (k + jitter) / phase["rate_rps"],
                    "document_id": f"d{(7 * len(rows) + repeat) % 20}",
                    "phase": phase["name"],
                    "prompt_tokens": None,
                    "output_tokens": None,
                }
            )
    return sorted(rows, key=lambda row: row["intended_s"])


def serve(run: Synthetic, arm: str, schedule: list[dict], end_s: float) -> list[dict]:
    """Run the schedule through the queue; Lindley's recursion, one server."""
    rows: list[dict] = []
    ends: list[float] = []
    free_s = 0.0
    congested = 0
    for planned in schedule:
        intended_s = planned["intended_s"]
        sent_s = intended_s + 0.0004
        row = dict.fromkeys(records.REQUESTS.names) | {
            key: planned[key]
            for key in ("repeat", "request_id", "document_id", "phase", "intended_s")
        }
        row |= {"arm": arm, "source": run.source, "sent_s": sent_s}
        outstanding = len(ends) - bisect_right(ends, sent_s)
        level = min(1.0, max(0.0, (outstanding - 3) / 9)) if arm.startswith("bellman") else 0.0
        scale = max(0.25, 1.0 - level)
        rung = round(math.log(scale) / math.log(0.8))
        words = round(DEFAULT_WORDS * 0.8**rung)
        row |= {"level": level, "level_age_s": 0.2, "scale": words / DEFAULT_WORDS}
        row |= {"word_budget": words, "asked_words": words, "max_tokens": 2 * words}
        rows.append(row)
        congested += planned["phase"] == "congested"
        every = run.reject_every.get(arm, 0)
        if run.fail_all or (
            every and planned["phase"] == "congested" and congested % every == every - 1
        ):
            row |= {"status": "rejected", "reason": "queue full", "ended_s": sent_s}
            continue
        start_s = max(free_s, sent_s)
        free_s = start_s + service_s(words, run.speed)
        ends.append(free_s)
        if free_s > end_s:
            row |= {"status": "unfinished", "reason": "the episode ended", "ended_s": end_s}
            continue
        row |= {
            "status": "ok",
            "first_token_s": start_s + 0.05 / run.speed,
            "last_token_s": free_s,
            "ended_s": free_s,
            "prompt_tokens": 800,
            "output_tokens": round(1.3 * words),
            "output_words": words,
            "finish_reason": "stop",
            "text_id": f"{planned['document_id']}-{words}",
            "preemptions": 0,
            "start_s": start_s,
        }
    return rows


def timeline_rows(run: Synthetic, rows: list[dict], phases: list[dict], end_s: float) -> list[dict]:
    """One row a second; the server draws 120 W idle and 600 W busy."""
    served = [row for row in rows if row["status"] == "ok"]
    starts_s = [row["start_s"] for row in served]
    lasts_s = [row["last_token_s"] for row in served]
    tokens = [0, *accumulate(row["output_tokens"] for row in served)]
    busy_s = [0.0, *accumulate(last - start for start, last in zip(starts_s, lasts_s, strict=True))]
    arrived = [row for row in rows if row["status"] != "rejected"]
    sent_s = [row["sent_s"] for row in arrived]
    ended_s = sorted(row["ended_s"] for row in arrived)
    measured = run.energy_source is not None
    result, last_energy_j = [], 0.0
    for second in range(math.ceil(end_s) + 1):
        done = bisect_right(lasts_s, second)
        busy = busy_s[done]
        if done < len(served) and starts_s[done] < second:
            busy += second - starts_s[done]
        energy_j = IDLE_W * second + (BUSY_W - IDLE_W) * busy
        sent = bisect_right(sent_s, second)
        inside = sent - bisect_right(ended_s, second)
        last = arrived[sent - 1] if sent else {"level": 0.0, "word_budget": DEFAULT_WORDS}
        result.append(
            {
                "repeat": rows[0]["repeat"],
                "arm": rows[0]["arm"],
                "time_s": float(second),
                "phase": next((p["name"] for p in phases if second < p["end_s"]), records.DRAIN),
                "source": run.source,
                "level": last["level"],
                "waiting": max(0, inside - 1),
                "running": min(1, inside),
                "kv_usage": min(1.0, inside / 50),
                "word_budget": last["word_budget"],
                "energy_j": energy_j if measured else None,
                "power_w": energy_j - last_energy_j if measured and second else None,
                "prompt_tokens_total": 800 * done,
                "generated_tokens_total": tokens[done],
                "preemptions_total": 0,
            }
        )
        last_energy_j = energy_j
    return result


def energy_windows(run: Synthetic, ticks: list[dict], phases: list[dict]) -> list[dict]:
    """The windows as an episode makes them, from readings at the phases' edges."""
    edges_s = [phase["start_s"] for phase in phases]
    edges_s += [phases[-1]["end_s"], ticks[-1]["time_s"]]
    readings = []
    for edge_s in edges_s:
        energy_j = ticks[int(edge_s)]["energy_j"]
        sampled_j = None if energy_j is None else (1 + run.energy_drift) * energy_j
        readings.append(EnergyReading(edge_s, energy_j, sampled_j=sampled_j))
    method = {"simulated": "modelled", "measured": "nvml"}.get(run.energy_source or "", "none")
    report = EnergyReport(
        method, run.energy_source, None if run.energy_source else "no meter found"
    )
    windows = timeline.energy_windows(
        [Phase(**phase) for phase in phases],
        readings,
        report,
        repeat=ticks[0]["repeat"],
        arm=ticks[0]["arm"],
        start_s=0.0,
    )
    return [asdict(window) for window in windows]


def quality_rows(texts: list[dict]) -> list[dict]:
    """F1 that peaks near 150 words: recall rises with length, precision falls."""
    rows = []
    for text in texts:
        words = int(text["text_id"].rsplit("-", 1)[1])
        document = int(text["document_id"][1:])
        recall = 0.6 * (1 - math.exp(-words / 120)) + 0.005 * document
        precision = 0.55 * math.exp(-words / 400) + 0.004 * document
        f1 = 2 * recall * precision / (recall + precision)
        row: dict = {"text_id": text["text_id"], "document_id": text["document_id"], "words": words}
        for name, factor in (("rouge1", 1.0), ("rouge2", 0.4), ("rougeL", 0.6), ("rougeLsum", 0.9)):
            row |= {
                f"{name}_precision": factor * precision,
                f"{name}_recall": factor * recall,
                f"{name}_f1": factor * f1,
                f"{name}_f1_random": 0.8 * factor * f1,
                f"{name}_f1_ratio": 1.25,
            }
        rows.append(row)
    return rows


def write_run(folder: Path, run: Synthetic = Synthetic()) -> Path:
    """Write the folder as a paired study leaves it when it is gathered."""
    folder.mkdir(parents=True, exist_ok=True)
    phases = phase_rows(run)
    end_s = phases[-1]["end_s"] + run.drain_s
    schedule: list[pa.Table] = []
    requests: list[dict] = []
    ticks: list[dict] = []
    windows: list[dict] = []
    episodes: list[dict] = []
    for repeat in range(run.repeats):
        planned = schedule_rows(run, repeat)
        schedule.append(
            Schedule(
                tuple(ScheduledRequest(**{k: r[k] for k in r if k != "repeat"}) for r in planned),
                tuple(Phase(**phase) for phase in phases),
                phases[-1]["end_s"],
            ).to_table(repeat)
        )
        for order, arm in enumerate(run.arms if repeat % 2 == 0 else run.arms[::-1]):
            rows = serve(run, arm, planned, end_s)
            of_episode = timeline_rows(run, rows, phases, end_s)
            requests += rows
            ticks += of_episode
            windows += energy_windows(run, of_episode, phases)
            ok = [row for row in rows if row["status"] == "ok"]
            episodes.append(
                {
                    "repeat": repeat,
                    "arm": arm,
                    "seed": repeat,
                    "schedule_hash": f"{repeat:064x}",
                    "order": order,
                    "phases": phases,
                    "end_s": end_s,
                    "source": run.source,
                    "engine_prompt_tokens": 800 * len(ok),
                    "engine_generated_tokens": sum(row["output_tokens"] for row in ok),
                    "signals_received": len(ok),
                    "signals_absent": 0,
                    "signals_malformed": 0,
                    "response_source": "extractive stand-in",
                    "warnings": list(run.warnings),
                }
            )
    table = pa.Table.from_pylist(requests, schema=records.REQUESTS)
    records.write_parquet(table, folder / "requests.parquet")
    records.write_parquet(pa.concat_tables(schedule), folder / "schedule.parquet")
    table = pa.Table.from_pylist(ticks, schema=records.TIMELINE)
    records.write_parquet(table, folder / "timeline.parquet")
    texts = {
        row["text_id"]: {
            "text_id": row["text_id"],
            "document_id": row["document_id"],
            "text": "word " * row["output_words"],
        }
        for row in requests
        if row["status"] == "ok"
    }
    text_rows = list(texts.values())
    table = pa.Table.from_pylist(text_rows, schema=records.TEXTS)
    records.write_parquet(table, folder / "texts.parquet")
    if run.quality and text_rows:
        quality = pa.Table.from_pylist(quality_rows(text_rows))
        records.write_parquet(quality, folder / "quality.parquet")
    records.write_json({"windows": windows, "meters": []}, folder / "energy.json")
    records.write_json(episodes, folder / "episodes.json")
    study = {"study": "Paired", "baseline": run.arms[0], "arms": list(run.arms)}
    records.write_json(study | {"paper_arm": run.paper_arm or run.arms[-1]}, folder / "study.json")
    capacity = {"capacity_rps": run.capacity_rps, "method": "formula", "source": run.source}
    records.write_json([capacity | {"axes": {}, "duration_s": 0.0}], folder / "capacity.json")
    provenance = {"python": "3.11", "commit": "synthetic"}
    records.write_json(provenance, folder / "provenance.json")
    status = {"status": "running", "process_id": 1, "process_started_s": 0.0}
    status["invalid_reasons"] = list(run.invalid_reasons)
    records.write_json(status, folder / "status.json")
    config = f"seed: 0\nrepeats: {run.repeats}\narrivals:\n  overload: {run.overload}\n"
    config += f"load_model: {{_target_: bellman.load.models.{run.load_model}}}\n"
    (folder / "config.yaml").write_text(config)
    return folder


def interrupt(folder: Path, sent: int) -> Path:
    """Leave the folder as Ctrl-C does in its last episode, after `sent` of the requests."""
    episodes = json.loads((folder / "episodes.json").read_text())
    cut = {name: episodes[-1][name] for name in ("repeat", "arm")}
    write = records.write_json
    write(episodes[:-1], folder / "episodes.json")
    energy = json.loads((folder / "energy.json").read_text())
    energy["windows"] = [w for w in energy["windows"] if not cut.items() <= w.items()]
    write(energy, folder / "energy.json")
    rows = pq.read_table(folder / "requests.parquet").to_pylist()
    lost = {"status": "unfinished", "reason": "the run ended first"}
    never = dict.fromkeys(("sent_s", "first_token_s", "last_token_s", "output_tokens", "text_id"))
    rows = [
        row | lost | never if cut.items() <= row.items() and row["request_id"] >= sent else row
        for row in rows
    ]
    table = pa.Table.from_pylist(rows, schema=records.REQUESTS)
    records.write_parquet(table, folder / "requests.parquet")
    write({"status": "interrupted"}, folder / "status.json")
    return folder
