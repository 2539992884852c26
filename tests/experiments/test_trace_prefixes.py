"""A trace's hash ids and priorities reach the simulated engine, through whole runs."""

import json

import pandas as pd
import pytest

CONVERSATIONS, TURNS, TURN_TOKENS = 4, 5, 2048


def write_trace(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def ttft_s(folder):
    """Return the seconds to the first token of every request, the same in both (equal) arms."""
    requests = pd.read_parquet(folder / "requests.parquet").sort_values("request_id")
    assert set(requests.status) == {"ok"}
    requests["ttft_s"] = requests.first_token_s - requests.intended_s
    first, second = (of_arm.ttft_s.to_numpy() for _, of_arm in requests.groupby("arm"))
    assert first == pytest.approx(second)
    return first


@pytest.fixture(scope="module")
def replay(run_small):
    def run(path, *overrides):
        return run_small(
            "arrivals=trace_mooncake",
            f"arrivals.path={path}",
            "arrivals.warmup_s=0",
            "arm=[none,threshold]",
            "arms.threshold.controller.limit=1000",  # never reached: another none,
            "repeats=1",
            *overrides,
        )

    return run


def test_the_turns_of_a_conversation_find_their_prefix_in_the_cache(tmp_path, replay):
    blocks = TURN_TOKENS // 512
    rows = [
        {
            "timestamp": 4000 * (turn * CONVERSATIONS + conversation),  # each on an idle engine
            "input_length": TURN_TOKENS * (turn + 1),
            "output_length": 20,
            "hash_ids": [1000 * conversation + block for block in range(blocks * (turn + 1))],
        }
        for turn in range(TURNS)
        for conversation in range(CONVERSATIONS)
    ]
    path = write_trace(tmp_path / "trace.jsonl", rows)
    without = replay(path)
    cached = replay(path, "prefix_caching=true")

    schedule = pd.read_parquet(without / "schedule.parquet").sort_values("request_id")
    assert [list(ids) for ids in schedule.hash_ids] == [row["hash_ids"] for row in rows]

    first, later = slice(None, CONVERSATIONS), slice(CONVERSATIONS, None)
    assert ttft_s(cached)[first] == pytest.approx(ttft_s(without)[first], abs=2e-6)
    # With its prefix known, a turn costs little more than the first, however long it has become.
    assert (ttft_s(cached)[later] < 1.5 * ttft_s(cached)[0]).all()
    assert (ttft_s(without)[later] > 1.5 * ttft_s(cached)[later]).all()


def test_the_important_request_of_a_trace_goes_first(tmp_path, replay):
    rows = [
        {"timestamp": at, "input_length": 8192, "output_length": 20, "importance": importance}
        for at, importance in [(0, 0), (1, 2), (1, 1), (5000, 0)]
    ]
    path = write_trace(tmp_path / "trace.jsonl", rows)
    names = ("arrivals.hash_ids_column=null", "arrivals.priority_column=importance")
    first, second, third, _ = ttft_s(replay(path, *names))
    assert first < second < third
    first, second, third, _ = ttft_s(replay(path, *names, "engine.scheduling_policy=priority"))
    assert first < third < second
