"""AIPerf's and vLLM's result files: read as these tools write them, and ours written for them."""

import json

import pandas as pd
import pyarrow as pa
import pytest

from analysis.frames import derive, load_run
from analysis.interchange.__main__ import main
from analysis.interchange.combine import combine, export
from bellman.errors import RunError
from bellman.records import REQUESTS, TEXTS, write_json, write_parquet


def request(request_id, intended_s, **changes):
    values = {
        "repeat": 0,
        "arm": "none",
        "request_id": request_id,
        "document_id": f"d{request_id}",
        "phase": "congested",
        "intended_s": intended_s,
        "source": "measured",
        "status": "ok",
        "sent_s": intended_s + 0.25,
        "first_token_s": intended_s + 1.0,
        "last_token_s": intended_s + 3.0,
        "ended_s": intended_s + 3.0,
        "prompt_tokens": 900,
        "output_tokens": 41,
        "text_id": "t1",
    }
    return values | changes


LOST = {"first_token_s": None, "last_token_s": None, "output_tokens": None, "text_id": None}


@pytest.fixture
def run(tmp_path):
    rows = [
        request(0, 1.0, phase="warmup"),
        request(1, 2.0, chunk_gaps_s=[0.5, 1.5]),
        request(2, 2.5, output_tokens=1, first_token_s=5.5),
        request(3, 3.0, status="rejected", reason="queue limit", **LOST),
        request(4, 3.5, status="error", reason="HTTP 500", **LOST),
        request(5, 4.0, status="unfinished", reason="not sent", sent_s=None, ended_s=None, **LOST),
    ]
    folder = tmp_path / "run"
    folder.mkdir()
    write_parquet(pa.Table.from_pylist(rows, REQUESTS), folder / "requests.parquet")
    text = {"text_id": "t1", "document_id": "d1", "text": "An answer."}
    write_parquet(pa.Table.from_pylist([text], TEXTS), folder / "texts.parquet")
    write_json({"baseline": "none", "arms": ["none"]}, folder / "study.json")
    return folder


def times(frame):
    columns = ["e2e_s", "service_latency_s", "client_wait_s", "ttft_s", "tpot_s", "longest_gap_s"]
    return frame[columns].reset_index(drop=True)


def test_what_aiperf_gets_comes_back_as_it_was(run, tmp_path):
    export(run)
    combine(tmp_path / "both", [("a", run / "interchange" / "none-0.profile_export.jsonl")])
    back = load_run(tmp_path / "both").requests
    ours = load_run(run).requests
    # AIPerf has no request that was never sent: the last one seems to have left when it was due.
    pd.testing.assert_frame_equal(times(back[:5]), times(ours[:5]), check_exact=False, atol=1e-6)
    assert list(back["status"]) == ["ok", "ok", "ok", "rejected", "error", "unfinished"]
    assert list(back["phase"]) == list(ours["phase"])
    assert list(back["document_id"]) == list(ours["document_id"])
    assert list(back["output_tokens"].dropna()) == [41, 41, 1]


def test_what_vllm_gets_comes_back_as_it_was_without_warm_up(run, tmp_path):
    export(run)
    combine(tmp_path / "both", [("v", run / "interchange" / "none-0.vllm_bench.json")])
    back = load_run(tmp_path / "both").requests
    ours = load_run(run).requests.query("phase != 'warmup'")
    pd.testing.assert_frame_equal(
        times(back[back["ok"]]), times(ours[ours["ok"]]), check_exact=False, atol=1e-6
    )
    assert list(back["status"]) == ["ok", "ok", "rejected", "error", "error"]


def test_vllms_result_has_its_statistics_in_milliseconds(run):
    export(run)
    result = json.loads((run / "interchange" / "none-0.vllm_bench.json").read_text())
    assert (result["completed"], result["failed"], result["num_prompts"]) == (2, 3, 5)
    assert result["mean_e2el_ms"] == pytest.approx(2750)
    assert result["mean_ttft_ms"] == pytest.approx((750 + 2750) / 2)
    assert result["mean_tpot_ms"] == pytest.approx(2000 / 40)
    assert result["generated_texts"] == ["An answer.", "An answer.", "", "", ""]
    assert result["errors"][2] == "rejected: queue limit"
    assert result["queue_times"][0] == pytest.approx(0.25)
    assert result["itls"] == [[0.5, 1.5], [], [], [], []]
    assert (result["mean_itl_ms"], result["p99_itl_ms"]) == (1000, pytest.approx(1490))


def test_a_simulated_run_does_not_come_back_as_a_measured_one(run, tmp_path):
    table = pa.Table.from_pylist([request(i, float(i), source="simulated") for i in range(3)])
    write_parquet(table, run / "requests.parquet")
    export(run)
    sources = [("a", run / "interchange" / "none-0.profile_export.jsonl")]
    sources += [("v", run / "interchange" / "none-0.vllm_bench.json"), ("ours", run)]
    combine(tmp_path / "all", sources)
    back = load_run(tmp_path / "all")
    assert back.source == "simulated"
    assert back.requests["chunk_gaps_s"].isna().all()


def aiperf_line(number, **metadata):
    """A line as AIPerf 0.13 writes it for a streamed request, shortened to what is read."""
    start = 1_795_978_882_000_000_000 + number * 1_000_000_000
    return {
        "metadata": {
            "session_num": number,
            "conversation_id": "c",
            "credit_issued_ns": start,
            "request_start_ns": start + 4_000_000,
            "request_end_ns": start + 104_000_000,
            "worker_id": "worker_1",
            "benchmark_phase": "profiling",
            "was_cancelled": False,
        }
        | metadata,
        "metrics": {
            "request_latency": {"value": 100.0, "unit": "ms"},
            "time_to_first_token": {"value": 20.5, "unit": "ms"},
            "output_sequence_length": {"value": 9, "unit": "tokens"},
            "input_sequence_length": {"value": 50, "unit": "tokens"},
            "inter_chunk_latency": {"value": [9.0, 12.5], "unit": "ms"},
        },
    }


def test_aiperfs_own_lines_are_read_with_the_wait_before_the_send(tmp_path):
    lines = [
        aiperf_line(0, benchmark_phase="warmup"),
        aiperf_line(1),
        aiperf_line(2) | {"metrics": {}, "error": {"code": 429, "message": "busy"}},
        aiperf_line(3) | {"metrics": {}, "error": {"code": 500, "message": "broken"}},
        aiperf_line(4, was_cancelled=True),
    ]
    path = tmp_path / "profile_export.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    combine(tmp_path / "out", [("aiperf", path)])
    frame = load_run(tmp_path / "out").requests
    assert list(frame["status"]) == ["ok", "ok", "rejected", "error", "unfinished"]
    assert list(frame["phase"]) == ["warmup"] + 4 * ["congested"]
    second = frame.iloc[1]
    assert second["intended_s"] == pytest.approx(1.0)
    assert second["e2e_s"] == pytest.approx(0.104)
    assert second["service_latency_s"] == pytest.approx(0.100)
    assert second["ttft_s"] == pytest.approx(0.0245)
    assert second["tpot_s"] == pytest.approx(0.0795 / 8)
    assert second["longest_gap_s"] == pytest.approx(0.0125)
    assert set(frame["source"]) == {"measured"}


def test_vllms_own_result_is_read_with_gaps_where_latencies_are_missing(tmp_path):
    result = {
        "start_times": [100.0, 101.5],
        "ttfts": [0.5, 0.0],
        "itls": [[0.1, 0.2], []],
        "input_lens": [7, 8],
        "output_lens": [3, 0],
        "errors": ["", "Too Many Requests"],
    }
    path = tmp_path / "vllm.json"
    path.write_text(json.dumps(result))
    combine(tmp_path / "out", [("vllm", path)])
    frame = derive(pd.read_parquet(tmp_path / "out" / "requests.parquet"))
    assert list(frame["e2e_s"].dropna()) == pytest.approx([0.8])
    assert list(frame["longest_gap_s"].dropna()) == [0.2]
    assert list(frame["intended_s"]) == [0.0, 1.5]
    assert list(frame["status"]) == ["ok", "rejected"]


ENDLESS = (
    '{"metadata": {"request_start_ns": 1}, "metrics": {"request_latency": {"value": Infinity}}}'
)
VLLM = {
    **{name: [1] for name in ("start_times", "ttfts", "input_lens", "output_lens")},
    **{"errors": [""], "latencies": [2.0]},
}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"metadata": {}}\n', "a.jsonl:1: not a line of AIPerf"),
        ("a.jsonl", '{"metadata": {"request_start_ns": 1}, "metrics": null}', "a.jsonl:1: not a"),
        ("a.jsonl", "[" * 10**5, "a.jsonl:1: not a line of AIPerf"),
        ("a.jsonl", ENDLESS, "a.jsonl:1: not a line of AIPerf"),
        ("a.jsonl", "\n", "a.jsonl: no requests"),
        ("a.json", '{"ttfts": []}', "--save-detailed"),
        ("a.json", "nonsense", "not a JSON file"),
        ("a.json", "[" * 10**5, "not a JSON file"),
        ("a.json", json.dumps(VLLM | {"ttfts": None}), "not a result of vllm bench serve"),
        ("a.json", json.dumps(VLLM | {"errors": [True]}), "not a result of vllm bench serve"),
        ("a.json", json.dumps(VLLM | {"start_times": ["x"]}), "not a result of vllm bench serve"),
        ("a.txt", "", "give a profile_export.jsonl"),
    ],
)
def test_other_files_are_refused_by_name(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(RunError, match=message):
        combine(tmp_path / "out", [("x", path)])
    assert not (tmp_path / "out").exists()


def test_the_commands(run, tmp_path, capsys):
    assert main(["export", str(run)]) == 0
    assert "none-0.profile_export.jsonl" in capsys.readouterr().out
    out = str(tmp_path / "out")
    assert main(["combine", out, f"ours={run}", f"again={run}"]) == 0
    assert "ours none" in capsys.readouterr().out
    assert main(["combine", out, f"ours={run}"]) == 1
    assert "exists" in capsys.readouterr().err
    assert main(["combine"]) == 2
