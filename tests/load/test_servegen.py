"""ServeGen's clients: rates, burstiness and lengths are those of the data."""

import json
from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf

from bellman.build import build
from bellman.errors import RunError

CONF = Path(__file__).parents[2] / "conf" / "arrivals"
DOCUMENTS = ["a", "b", "c"]


def write_client(folder, number, windows, lengths):
    trace = "".join(f"{','.join(str(value) for value in window)}\n" for window in windows)
    (folder / f"chunk-{number}-trace.csv").write_text(trace)
    content = {
        str(start): {"input_tokens": str(prompt), "output_tokens": str(output)}
        for start, prompt, output in lengths
    }
    (folder / f"chunk-{number}-dataset.json").write_text(json.dumps(content))


@pytest.fixture
def folder(tmp_path):
    write_client(
        tmp_path,
        0,
        [(0, 0, 0, "", 0, 0), (600, 8.0, 2.0, "Gamma", 0.25, 0.5), (1200, 1.0, 1, "Weibull", 1, 1)],
        [(0, {}, {}), (600, {100: 0.25, 200: 0.75}, {7: 1.0})],
    )
    write_client(
        tmp_path,
        1,
        [(0, 2.0, 1.0, "Gamma", 1.0, 0.5), (600, 2.0, 1.0, "Gamma", 1.0, 0.5)],
        [(0, {50: 1.0}, {5: 1.0})],
    )
    return tmp_path


def draw(folder, seed=1, **changes):
    changes = {"path": str(folder), "start_s": 0, "length_s": 1200, "warmup_s": 0, **changes}
    node = OmegaConf.merge(OmegaConf.load(CONF / "servegen.yaml"), changes)
    return build(node, "arrivals").schedule(10.0, DOCUMENTS, seed=seed, repeat=0)


def test_rates_and_lengths_are_the_clients(folder):
    schedule = draw(folder)
    first = [r for r in schedule.requests if r.prompt_tokens == 50]
    busy = [r for r in schedule.requests if r.prompt_tokens != 50]
    assert len(first) == pytest.approx(2400, abs=4 * 2400**0.5)
    assert len(busy) == pytest.approx(4800, abs=4 * (4 * 4800) ** 0.5)
    assert all(600 <= r.intended_s < 1200 and r.output_tokens == 7 for r in busy)
    share = np.mean([r.prompt_tokens == 200 for r in busy])
    assert share == pytest.approx(0.75, abs=0.03)
    times = [r.intended_s for r in schedule.requests]
    assert times == sorted(times)


def test_the_busiest_clients_are_taken_first_and_the_window_is_cut(folder):
    schedule = draw(folder, clients=1, start_s=900, length_s=300)
    assert {r.output_tokens for r in schedule.requests} == {7}
    assert len(schedule.requests) == pytest.approx(2400, abs=4 * (4 * 2400) ** 0.5)


def test_a_rate_scales_all_clients_alike(folder):
    schedule = draw(folder, load=0.5)
    counted = len(schedule.requests) / schedule.end_s
    assert counted == pytest.approx(5.0)


def test_the_seed_decides(folder):
    assert draw(folder).digest == draw(folder).digest
    assert draw(folder).digest != draw(folder, seed=2).digest


def test_bad_data_is_named_by_file_and_line(folder):
    (folder / "chunk-1-trace.csv").write_text("0,2.0,1.0,Gamma,1.0,0.5\n600,2.0,1.0\n")
    with pytest.raises(RunError, match=r"chunk-1-trace\.csv:2: expected start, rate"):
        draw(folder)
    (folder / "chunk-1-trace.csv").write_text("0,2.0,1.0,Zipf,1.0,0.5\n")
    with pytest.raises(RunError, match=r"chunk-1-trace\.csv:1: distribution 'Zipf'"):
        draw(folder)


def test_a_folder_without_clients_says_so(tmp_path):
    with pytest.raises(RunError, match=r"no chunk-\*-trace\.csv"):
        draw(tmp_path)


def test_an_empty_window_says_so(folder):
    with pytest.raises(RunError, match=r"no request from 5000\.0 s"):
        draw(folder, start_s=5000, length_s=100)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"0,nan,1.0,Gamma,1.0,0.5", "expected start, rate"),
        (b"0,-1,1.0,Gamma,1.0,0.5", "expected start, rate"),
        (b"0,inf,1.0,Gamma,1.0,0.5", "expected start, rate"),
        (b'0,"1,1.0,Gamma,1.0,0.5', "expected start, rate"),
        (b"0,1,1,Gamma,1,1\n0,1,1,Gamma,1,1", "start 0 is not after the row's before it"),
        (b"0,1,1,Gamm\xe4,1,1", "not UTF-8 at byte"),
    ],
)
def test_a_row_that_is_no_window_is_named(folder, line, message):
    (folder / "chunk-1-trace.csv").write_bytes(line)
    with pytest.raises(RunError, match=rf"^.*chunk-1-trace\.csv:\d: {message}.*$"):
        draw(folder)


@pytest.mark.parametrize(
    "lengths",
    [
        "{1: nan}",
        "{'a': 1}",
        "{1: -1.0}",
        f"{{{2**70}: 1.0}}",
        "(" * 10_000,
        "{1: 1e999}",
        "[1]",
        None,
        5,
    ],
)
def test_lengths_that_are_none_are_named(folder, lengths):
    content = {"0": {"input_tokens": lengths, "output_tokens": "{1: 1.0}"}}
    (folder / "chunk-1-dataset.json").write_text(json.dumps(content))
    with pytest.raises(RunError, match=r"^.*chunk-1-dataset\.json: not a ServeGen data set: .*$"):
        draw(folder)
