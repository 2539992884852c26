"""The benchmark of whole runs runs, on the configured engine and on one with another's timing."""

import json

from bellman.settings import read_settings
from benchmarks.beside_dynamo import CASES
from benchmarks.session_beside_dynamo import engine_of
from benchmarks.session_beside_dynamo import schedule_of as forced
from benchmarks.whole_run import run_whole, schedule_of
from tests.experiments.conftest import read_config


def test_an_episode_of_the_benchmark_ends(tmp_path):
    for name in ("ours", "forced"):
        (tmp_path / name).mkdir()
    settings = read_settings(read_config("corpus.limit_documents=2"))
    corpus = settings.corpus.load()
    run_whole(tmp_path / "ours", settings, corpus, schedule_of(20, corpus))
    assert {row["status"] for row in requests_of(tmp_path / "ours")} == {"ok"}

    _, draw, limits = CASES[0]
    load = draw(10)
    engine = engine_of(settings, limits)
    run_whole(
        tmp_path / "forced", settings, corpus, forced(load, corpus), engine=engine, arm="none"
    )
    rows = sorted(requests_of(tmp_path / "forced"), key=lambda row: row["request_id"])
    assert [row["output_tokens"] for row in rows] == [output for _, _, output in load]


def requests_of(folder):
    (file,) = folder.rglob("requests.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]
