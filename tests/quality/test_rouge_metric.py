import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bellman.quality.score import METRIC

PREDICTIONS = ["the cat sat", "a dog", "кошка сидела", "."]
REFERENCES = ["the cat sat here", "a bird flew", "кошка сидела", "one word"]


def compute(**options: object) -> Any:
    import evaluate

    metric = evaluate.load(str(METRIC), keep_in_memory=True)
    return metric.compute(predictions=PREDICTIONS, references=REFERENCES, **options)


def test_the_mean_is_the_plain_mean_with_its_interval() -> None:
    lists = compute(aggregate=False)
    means = compute()
    assert set(lists) < set(means)
    for name, values in lists.items():
        assert means[name] == pytest.approx(np.mean(values), abs=1e-15)
        assert means[f"{name}_low"] <= means[name] <= means[f"{name}_high"]
    assert lists["rouge1_recall"] == pytest.approx([3 / 4, 1 / 3, 1, 0])
    assert lists["rouge1_precision"] == pytest.approx([1, 1 / 2, 1, 0])


def test_the_interval_is_seeded() -> None:
    from bellman.quality.rouge_metric import mean_with_interval

    values = [0.1, 0.7, 0.2, 0.45, 0.31, 0.9, 0.66]
    assert mean_with_interval(values, seed=1) == mean_with_interval(values, seed=1)
    assert mean_with_interval(values, seed=1) != mean_with_interval(values, seed=2)


def test_stemming_is_a_choice() -> None:
    import evaluate

    metric = evaluate.load(str(METRIC), keep_in_memory=True)
    pair = {"predictions": ["congested servers"], "references": ["congestion of a server"]}
    assert metric.compute(**pair, use_stemmer=True)["rouge1_precision"] == 1
    assert metric.compute(**pair, use_stemmer=False)["rouge1_precision"] == 0


@pytest.mark.slow
def test_loads_without_network(tmp_path: Path) -> None:
    script = f"""
import json, socket
def refuse(*_): raise AssertionError("the metric went to the network")
socket.socket.connect = socket.getaddrinfo = refuse
import evaluate
metric = evaluate.load({str(METRIC)!r}, keep_in_memory=True)
print(json.dumps(metric.compute(predictions=["a b"], references=["a b"])))
"""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(run.stdout)["rougeLsum_f1"] == 1


@pytest.mark.slow
def test_a_home_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    script = """
from bellman.errors import RunError
from bellman.quality.score import load_metric
try:
    load_metric()
except RunError as error:
    print(error)
"""
    environment = {**os.environ, "HF_HOME": str(tmp_path / "file" / "home")}
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert "set HF_HOME" in run.stdout
    assert run.stdout.count("\n") == 1
