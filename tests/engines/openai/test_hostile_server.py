"""Two thousand broken answers of many kinds: each costs itself, and nothing else."""

import math
import random
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pytest

from bellman.adaptation.linear import Linear
from bellman.admission.accept_all import AcceptAll
from bellman.app.budget import BudgetRules
from bellman.app.prompts import PromptBook
from bellman.app.summarization import SummarizationApp
from bellman.controllers.none import NoControl
from bellman.corpus.base import Corpus, Document
from bellman.energy.none import UnmeasuredEnergy
from bellman.engines.base import Control, EngineSession
from bellman.engines.openai import connections
from bellman.engines.openai.engine import OpenAIEngine
from bellman.episode import Arm, EpisodePlan, run_episode
from bellman.load.models.open_loop import OpenLoop
from bellman.load.schedule import CONGESTED, Phase, Schedule, ScheduledRequest
from bellman.records import REQUESTS, TEXTS, read_json_lines
from experiments.recorder import Recorder
from tests.engines.openai.hostile import EITHER, ERRORS, GOOD, KINDS, OK, HostileServer
from tests.servers import raw_server

BROKEN, GOOD_ONES = 1000, 200
LENGTH_S = (BROKEN + GOOD_ONES) / 1000
ARM = Arm("none", Control(NoControl(), AcceptAll(), 1.0), Linear(0.25))
RULES = BudgetRules(300, 1.4, 0.744, 2.0, 16, "summary", {"summary": 100})


def schedule(seed: int) -> Schedule:
    """Return every kind equally often, in a random order, with good requests between."""
    kinds = [kind for kind in KINDS if kind != GOOD]
    order = [kinds[index % len(kinds)] for index in range(BROKEN)] + [GOOD] * GOOD_ONES
    random.Random(seed).shuffle(order)
    requests = tuple(
        ScheduledRequest(index, index / 1000, kind, CONGESTED) for index, kind in enumerate(order)
    )
    return Schedule(requests, (Phase(CONGESTED, 0.0, LENGTH_S, 1000.0),), LENGTH_S)


async def run(url: str, folder: Path, plan: EpisodePlan) -> dict[str, Any]:
    """Run the episode with the real client and the real records."""
    documents = {kind: Document(kind, kind, (kind,), "reference") for kind in KINDS}
    engine = OpenAIEngine(base_url=url, gateway=False, prefix_cache="disabled").create(
        Corpus("none", (), "none")
    )
    with Recorder(folder, "measured") as recorder:

        def make_app(session: EngineSession, arm: Arm) -> SummarizationApp:
            prompts = PromptBook(documents, engine.count_tokens, 0.744)
            return SummarizationApp(
                session,
                arm.adaptation,
                RULES,
                prompts,
                recorder.texts,
                asked_words=lambda words: words,
                request_timeout_s=60.0,
            )

        async with engine:
            await run_episode(
                engine,
                plan,
                make_app=make_app,
                make_meter=no_meter,
                writer=recorder.requests,
                on_row=recorder.add_row,
                on_attempt=recorder.add_attempt,
            )
    return engine.describe()


def lines(folder: Path, name: Literal["requests", "texts"]) -> pd.DataFrame:
    schema = {"requests": REQUESTS, "texts": TEXTS}[name]
    return read_json_lines(folder / f"{name}.jsonl", schema).to_pandas()


async def test_every_broken_answer_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "STALE_S", math.inf)  # however slow this machine is
    assert len(KINDS) > 60
    plan = EpisodePlan(0, ARM, schedule(1), OpenLoop(), None, 1.0, 60.0)
    server = HostileServer(2)
    async with raw_server(server.serve) as url:
        facts = await run(url, tmp_path, plan)
    records = lines(tmp_path, "requests")
    assert sorted(records["request_id"]) == list(range(BROKEN + GOOD_ONES))
    certain = records[~records["document_id"].isin(EITHER)]
    expected = certain["document_id"].map(status_of)
    assert Counter(zip(certain["document_id"], certain["status"], strict=True)) == Counter(
        zip(certain["document_id"], expected, strict=True)
    )
    bad = records[records["status"] != "ok"]
    assert bad["reason"].str.len().between(5, 400).all()
    assert bad["reason"].map(str.isprintable).all()
    ok = records[records["status"] == "ok"]
    assert ok[["first_token_s", "last_token_s", "text_id"]].notna().all(axis=None)
    assert ok["finish_reason"].map(str.isprintable).all()
    assert records["retries"].le(1).all()
    assert not lines(tmp_path, "texts")["text"].str.contains("stale").any()
    assert facts["model"] == "[/x]\N{REPLACEMENT CHARACTER}"


async def no_meter(session: EngineSession) -> UnmeasuredEnergy:
    return UnmeasuredEnergy("not asked for")


def status_of(kind: str) -> str:
    return "ok" if kind in OK else "error" if kind in ERRORS else "rejected"
