"""The Hub is never asked here: offline runs in a process of their own, with a cache made here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf

from bellman.build import build
from bellman.corpus.hub import HubDataset

CONF = Path(__file__).parents[2] / "conf" / "corpus"
LOAD = """
import sys
from omegaconf import OmegaConf
from bellman.build import build
from bellman.errors import RunError
try:
    build(OmegaConf.load(sys.argv[1]), "corpus").load()
except RunError as error:
    print(error)
"""


@pytest.mark.parametrize("name", ["cnn_dailymail", "xsum", "govreport"])
def test_the_configured_data_sets_build(name: str) -> None:
    node = OmegaConf.load(CONF / f"{name}.yaml")
    assert isinstance(node, DictConfig)
    corpus = build(node, "corpus")
    assert isinstance(corpus, HubDataset)
    assert corpus.name == name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        pytest.param(
            {"HF_ENDPOINT": "http://127.0.0.1:9"},
            "http://127.0.0.1:9 cannot be reached",
            marks=pytest.mark.slow,
        ),
        ({"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE is set and no copy is in the cache"),
    ],
)
def test_offline_is_one_line_with_a_remedy(
    tmp_path: Path, environment: dict[str, str], reason: str
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", LOAD, str(CONF / "cnn_dailymail.yaml")],
        env={**os.environ, "HF_HOME": str(tmp_path), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.startswith(f"corpus=cnn_dailymail: {reason}")
    assert "corpus=aclsum" in run.stdout
    assert run.stdout.count("\n") == 1
    assert run.stderr == ""
