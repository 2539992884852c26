"""Trace readers: every published format, bad rows, windows, and rates that keep the bursts."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from omegaconf import OmegaConf

from bellman.build import build
from bellman.errors import ConfigError, RunError
from bellman.load.arrivals.lengths import lengths_of

CONF = Path(__file__).parents[2] / "conf" / "arrivals"
BESIDE = Path(__file__).parents[3]
"""Where the published traces are looked for: `*/data/` beside the repository."""
DOCUMENTS = [f"d{i}" for i in range(9)]


def arrivals(kind, **changes):
    return build(OmegaConf.merge(OmegaConf.load(CONF / f"{kind}.yaml"), changes), "arrivals")


def replay(kind, path, capacity_rps=10.0, repeat=0, **changes):
    changes = {"warmup_s": 0, "path": str(path), **changes}
    return arrivals(kind, **changes).schedule(capacity_rps, DOCUMENTS, seed=1, repeat=repeat)


def rows(schedule):
    return [(r.intended_s, r.prompt_tokens, r.output_tokens) for r in schedule.requests]


def write(folder, name, text):
    path = folder / name
    path.write_bytes(text.encode())
    return path


AZURE_2023 = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 18:15:46.6805900,374,44\r\n"
    "2023-11-16 18:15:50.9951690,396,109\r\n"
    "2023-11-16 18:15:51.2224670,879,55"  # no final newline
)
AZURE_2024 = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2024-05-10 00:00:00.009930+00:00,2162,5\n"
    "2024-05-10 02:00:01.259930+02:00,2399,6\n"
    "2024-05-10 00:00:03+00:00,1999,7\n"
)


def test_azure_2023_has_seven_digits_crlf_and_no_final_newline(tmp_path):
    schedule = replay("trace_azure", write(tmp_path, "conv.csv", AZURE_2023))
    assert rows(schedule) == [
        (0.0, 374, 44),
        (pytest.approx(4.314579, abs=2e-6), 396, 109),
        (pytest.approx(4.541877, abs=2e-6), 879, 55),
    ]


def test_azure_2024_has_time_zones(tmp_path):
    schedule = replay("trace_azure", write(tmp_path, "code.csv", AZURE_2024))
    assert rows(schedule) == [
        (0.0, 2162, 5),
        (pytest.approx(1.25, abs=2e-6), 2399, 6),
        (pytest.approx(2.99007, abs=2e-6), 1999, 7),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "5,ChatGPT,472,18,490,Conversation log\n"
        "45,ChatGPT,1087,0,1087,Conversation log\n"
        "118,GPT-4,417,276,693,API log\n",
        "\ufeffTimestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,"
        "Log Type\n"
        "5.0,a1,1.5,ChatGPT,472,18,490,Conversation log\n"
        "45.0,a2,0.1,ChatGPT,1087,0,1087,Conversation log\n"
        "118.0,a3,9.5,GPT-4,417,276,693,API log\n",
    ],
    ids=["version 1", "with sessions"],
)
def test_burstgpt_is_bound_by_header_and_leaves_out_failed_requests(tmp_path, text):
    schedule = replay("trace_burstgpt", write(tmp_path, "burst.csv", text))
    assert rows(schedule) == [(0.0, 472, 18), (113.0, 417, 276)]
    assert schedule.left_out == {"output tokens 0": 1}


def test_mooncake_is_in_milliseconds_with_several_requests_at_one_instant(tmp_path):
    lines = [(0, 6758, 500), (0, 7322, 490), (3052, 2290, 316)]
    text = "".join(
        json.dumps({"timestamp": t, "input_length": p, "output_length": o, "hash_ids": [0]}) + "\n"
        for t, p, o in lines
    )
    schedule = replay("trace_mooncake", write(tmp_path, "mooncake.jsonl", text))
    assert rows(schedule) == [(0.0, 6758, 500), (0.0, 7322, 490), (3.052, 2290, 316)]


def test_hash_ids_and_priorities_follow_their_rows_through_every_format_window_and_rate(tmp_path):
    columns = {
        "timestamp": [9.0, 7.5, 3.0, 4.25],
        "ids": [[0, 9], [0, 1], [0], []],
        "importance": [9, 2, -1, 0],
    }
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "a.parquet")
    csv = "ids,timestamp,importance\n" + "".join(
        f'"{r["ids"]}",{r["timestamp"]},{r["importance"]}\n' for r in table.to_pylist()
    )
    lines = "".join(json.dumps(row) + "\n" for row in table.to_pylist())
    for path in (
        tmp_path / "a.parquet",
        write(tmp_path, "a.csv", csv),
        write(tmp_path, "a.jsonl", lines),
    ):
        names = {"hash_ids_column": "ids", "priority_column": "importance"}
        schedule = replay("trace", path, **names, start_s=1, length_s=4, rate_rps=1)
        assert [(r.hash_ids, r.priority) for r in schedule.requests] == [((), 0), ((0, 1), 2)]
        bare = replay("trace", path).requests
        assert {(r.hash_ids, r.priority) for r in bare} == {(None, None)}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"ids": 3}, r"a.jsonl:2: ids=3 is not a list of whole numbers"),
        ({"ids": [0, 1.5]}, r"a.jsonl:2: ids=\[0, 1.5\] is not a list of whole numbers"),
        ({"ids": [2**63]}, r"a.jsonl:2: ids=\[\d+\] is not a list of whole numbers"),
        ({"ids": "0 1"}, r"a.jsonl:2: ids='0 1' is not a list of whole numbers"),
        ({"importance": 0.5}, r"a.jsonl:2: importance=0.5 is not a whole number of 32 bits"),
        ({"importance": None}, r"a.jsonl:2: importance=None is not a whole number of 32 bits"),
    ],
)
def test_bad_hash_ids_and_priorities_are_named(tmp_path, row, message):
    good = {"timestamp": 1, "ids": [0], "importance": 0}
    text = json.dumps(good) + "\n" + json.dumps({**good, "timestamp": 2, **row}) + "\n"
    with pytest.raises(RunError, match=message):
        replay(
            "trace",
            write(tmp_path, "a.jsonl", text),
            hash_ids_column="ids",
            priority_column="importance",
        )


def test_any_columns_of_csv_json_lines_and_parquet_are_the_same_trace(tmp_path):
    columns = {"at": [7.5, 3.0, 4.25], "in": [10, 20, 30], "out": [1, 2, 3]}
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "a.parquet")
    csv = "out,at,in\n" + "".join(f"{r['out']},{r['at']},{r['in']}\n" for r in table.to_pylist())
    lines = "".join(json.dumps(row) + "\n" for row in table.to_pylist())
    paths = [
        tmp_path / "a.parquet",
        write(tmp_path, "a.csv", csv),
        write(tmp_path, "a.jsonl", lines),
    ]
    names = {"time_column": "at", "prompt_column": "in", "output_column": "out"}
    replays = [rows(replay("trace", path, **names)) for path in paths]
    assert replays[0] == [(0.0, 20, 2), (1.25, 30, 3), (4.5, 10, 1)]
    assert replays[1] == replays[0]
    assert replays[2] == replays[0]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "timestamp,n\n1,2\nx,3\n", "a.csv:3: timestamp='x' is not a time in s"),
        ("a.csv", "timestamp,n\n1,2\n\n3\n", "a.csv:4: 1 fields, the header has 2"),
        ("a.csv", "timestamp,n\n1,2\nnan,3\n", "a.csv:3: timestamp='nan' is not a time in s"),
        ("a.csv", "timestamp,n\n1,2\n2,-3\n", "a.csv:3: n='-3' is not a whole number of tokens"),
        ("a.csv", "timestamp,n\n1,2\n2,1.5\n", "a.csv:3: n='1.5' is not a whole number of tokens"),
        ("a.csv", "time,n\n1,2\n", "a.csv: no column 'timestamp', it has time, n"),
        ("a.csv", "", "a.csv: no column 'timestamp', it has none"),
        ("a.csv", "timestamp,n\n1,2\n", "a.csv: 1 requests, a trace needs 2 or more"),
        ("a.csv", "timestamp,n\n1,2\n1,2\n", "all requests are at the same instant"),
        ("a.jsonl", '{"timestamp": 1, "n": 2}\n{"timestamp": 2\n', "a.jsonl:2: not a JSON object"),
        ("a.jsonl", '{"timestamp": 1}\n', "a.jsonl:1: no field 'n', it has timestamp"),
        (
            "a.jsonl",
            '{"timestamp": [], "n": 2}\n',
            "a.jsonl:1: timestamp=\\[\\] is not a time in s",
        ),
        ("a.parquet", "nonsense", "a.parquet: not a parquet file"),
        ("a.txt", "1 2 3", "a.txt: arrivals.path must be one of .csv, .jsonl, .parquet"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path, name, text, message):
    with pytest.raises(RunError, match=message):
        replay("trace", write(tmp_path, name, text), prompt_column="n")


def test_a_missing_file_and_a_missing_path_say_so(tmp_path):
    with pytest.raises(RunError, match=r"no such file, set arrivals\.path"):
        replay("trace", tmp_path / "none.csv")
    with pytest.raises(ConfigError, match=r"^arrivals\.path="):
        arrivals("trace")


def bursty_trace(folder):
    """Ten bursts of 20 requests in a second, every 30 s."""
    times = np.concatenate([30 * k + np.linspace(0, 1, 20) for k in range(10)])
    return write(folder, "bursts.csv", "timestamp\n" + "".join(f"{t:.6f}\n" for t in times))


def test_a_window_is_cut_in_the_traces_own_time(tmp_path):
    schedule = replay("trace", bursty_trace(tmp_path), start_s=30, length_s=60)
    assert len(schedule.requests) == 40
    assert schedule.requests[0].intended_s == 0.0
    assert schedule.end_s == 60
    with pytest.raises(RunError, match=r"no request from 2\.0 s to 7\.0 s"):
        replay("trace", bursty_trace(tmp_path), start_s=2, length_s=5)


def test_scaling_the_rate_keeps_the_shape_of_the_bursts(tmp_path):
    path = bursty_trace(tmp_path)
    window = {"start_s": 0, "length_s": 300}
    slow, fast = replay("trace", path, **window), replay("trace", path, rate_rps=4, **window)
    assert len(slow.requests) == len(fast.requests) == 200
    assert fast.end_s == pytest.approx(50)
    speed = slow.end_s / fast.end_s
    slow_s = np.array([request.intended_s for request in slow.requests])
    fast_s = np.array([request.intended_s for request in fast.requests])
    assert fast_s * speed == pytest.approx(slow_s, abs=1e-5)
    assert replay("trace", path, load=0.4, **window) == fast


def test_the_first_seconds_are_warm_up(tmp_path):
    schedule = replay("trace", bursty_trace(tmp_path), length_s=300, warmup_s=45)
    assert [(p.name, p.start_s, p.end_s) for p in schedule.phases] == [
        ("warmup", 0, 45),
        ("congested", 45, 300),
    ]
    assert sum(request.phase == "warmup" for request in schedule.requests) == 40
    with pytest.raises(RunError, match=r"arrivals\.warmup_s=400"):
        replay("trace", bursty_trace(tmp_path), warmup_s=400)


def test_repeats_share_the_arrivals_and_differ_in_documents(tmp_path):
    first, second = (replay("trace", bursty_trace(tmp_path), repeat=r) for r in (0, 1))
    assert rows(first) == rows(second)
    assert first.digest != second.digest


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"time_unit": "h"}, "time_unit"),
        ({"start_s": -1}, "start_s"),
        ({"length_s": 0}, "length_s"),
        ({"rate_rps": 1, "load": 1}, "rate_rps"),
        ({"load": 0}, "load"),
    ],
)
def test_a_wrong_value_names_its_key(changes, key):
    with pytest.raises(ConfigError, match=rf"^arrivals\.{key}="):
        arrivals("trace", path="a.csv", **changes)


def published(name):
    found = next(BESIDE.glob(f"*/data/{name}"), None)
    if found is None:
        pytest.skip(f"{name} is not at hand")
    return found


def test_the_published_azure_trace():
    schedule = replay("trace_azure", published("trace_azure_2023_conv.csv"))
    assert len(schedule.requests) + sum(schedule.left_out.values()) == 19_366
    assert (schedule.requests[0].prompt_tokens, schedule.requests[0].output_tokens) == (374, 44)
    assert schedule.requests[-1].output_tokens == 183
    assert schedule.requests[-1].intended_s == pytest.approx(3501.72, abs=0.01)


def test_the_published_mooncake_trace():
    schedule = replay("trace_mooncake", published("trace_mooncake_conversation_head.jsonl"))
    assert len(schedule.requests) == 2000
    assert schedule.requests[-1].intended_s == 669.0
    assert sum(request.intended_s == 0 for request in schedule.requests) > 1
    for request in schedule.requests:
        assert len(request.hash_ids) == -(-request.prompt_tokens // 512)


def test_the_capacity_is_measured_with_the_lengths_of_the_trace(tmp_path):
    path = write(tmp_path, "conv.csv", AZURE_2023)
    trace = arrivals("trace_azure", path=str(path))
    assert lengths_of(trace, seed=1, repeat=0) == [(374, 44), (396, 109), (879, 55)]
    bare = arrivals("trace", path=str(bursty_trace(tmp_path)))
    assert set(lengths_of(bare, seed=1, repeat=0)) == {(None, None)}
    assert lengths_of(arrivals("steady"), seed=1, repeat=0) == [(None, None)]
