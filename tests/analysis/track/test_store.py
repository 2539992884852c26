"""Runs in a real MLflow store.

MLflow needs other versions than constraints.txt has, so it lives in an environment of its own:
BELLMAN_MLFLOW_PYTHON names its interpreter, and without it one is made, which sees all else that
is installed here.
"""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from analysis.frames import load_run
from analysis.summarize import summarize
from tests.analysis.synthetic_run import write_run
from tests.analysis.track.test_entries import set_status
from tests.servers import ROOT

pytestmark = pytest.mark.slow
STORE = """
import json, sys
from mlflow.tracking import MlflowClient
client = MlflowClient(tracking_uri=f"sqlite:///{sys.argv[1]}")
found = []
for experiment in client.search_experiments():
    for run in client.search_runs([experiment.experiment_id]):
        found.append({
            "experiment": experiment.name, "tags": run.data.tags, "status": run.info.status,
            "metrics": run.data.metrics, "params": run.data.params,
            "files": [file.path for file in client.list_artifacts(run.info.run_id)],
        })
print(json.dumps(found))
"""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MLFLOW_DISABLE_TELEMETRY": "true"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    given = os.environ.get("BELLMAN_MLFLOW_PYTHON")
    if given:
        return given
    folder = tmp_path_factory.mktemp("mlflow")
    run(sys.executable, "-m", "venv", str(folder))
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "here.pth").write_text(sysconfig.get_paths()["purelib"])
    interpreter = str(folder / "bin" / "python")
    # As much of MLflow as writes into a database; its page is in the package `mlflow` alone.
    names = ("mlflow-skinny>=3.17", "sqlalchemy", "alembic")
    ended = run(interpreter, "-m", "pip", "install", "-q", *names)
    if ended.returncode != 0:
        pytest.skip(f"MLflow cannot be installed here: {ended.stderr[-300:]}")
    return interpreter


def stored(python: str, store: Path) -> list[dict[str, Any]]:
    ended = run(python, "-c", STORE, str(store))
    assert ended.returncode == 0, ended.stderr[-3000:]
    found: list[dict[str, Any]] = json.loads(ended.stdout)
    return found


def test_a_run_is_copied_once_and_again_after_another_analysis(python: str, tmp_path: Path) -> None:
    folder, store = write_run(tmp_path / "run"), tmp_path / "store" / "mlflow.db"
    summarize(load_run(folder))
    set_status(folder, "done")
    track = (python, "-m", "analysis.track", "--store", str(store), str(folder))
    assert f"{folder}: copied\n" in run(*track).stdout
    assert f"{folder}: already there\n" in run(*track).stdout
    (one,) = stored(python, store)
    summary = json.loads((folder / "summary.json").read_text())
    congested = summary["arms"]["bellman"]["phases"]["congested"]
    assert one["status"] == "FINISHED"
    assert one["tags"]["source"] == "simulated"
    assert one["metrics"]["bellman.phases.congested.e2e_mean_s"] == congested["e2e_mean_s"]
    assert "none.phases.congested.chunk_gap_p50_s" not in one["metrics"]
    assert one["params"]
    assert {"summary.json", "claims.json"} <= set(one["files"])

    summary["arms"]["none"]["offered"] += 1
    (folder / "summary.json").write_text(json.dumps(summary))
    (tmp_path / "nothing").mkdir()
    ended = run(*track, str(tmp_path / "nothing"))
    assert f"{folder}: copied again" in ended.stdout
    assert (ended.returncode, "holds no run" in ended.stderr) == (1, True)
    (one,) = stored(python, store)
    assert one["metrics"]["none.offered"] == summary["arms"]["none"]["offered"]


def test_without_mlflow_one_line_says_what_is_missing(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['mlflow'] = None; from analysis.track.__main__ import main; "
        f"sys.exit(main([{str(tmp_path)!r}]))"
    )
    ended = run(sys.executable, "-c", code)
    assert ended.returncode == 1
    assert ended.stderr == "copying runs needs the package mlflow: see docs/analysis.md, MLflow\n"
