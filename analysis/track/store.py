"""The local MLflow store: a SQLite file, and a folder of artifacts beside it."""

import os
from pathlib import Path
from typing import Any

from analysis.track.entries import Entries
from bellman.errors import RunError

RUN_ID, DIGEST = "bellman.run_id", "bellman.digest"
"""Tags by which a run is found again; the digest is written last."""
AT_ONCE = 100
"""Entries of one request: the fewest that MLflow allows of a kind."""
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}


class Store:
    """Copies runs into one store, each once."""

    def __init__(self, file: Path) -> None:
        """Open the store, made where there is none; raises `RunError` without MLflow."""
        os.environ.update(QUIET)  # nothing is reported anywhere
        try:
            from mlflow import entities  # noqa: PLC0415
            from mlflow.tracking import MlflowClient  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise RunError(
                f"copying runs needs the package {error.name}: see docs/analysis.md, MLflow"
            ) from None
        file.parent.mkdir(parents=True, exist_ok=True)
        self._entities: Any = entities
        self._client = MlflowClient(tracking_uri=f"sqlite:///{file.resolve()}")
        self._artifacts = file.resolve().with_suffix(".artifacts")

    def add(self, run: Entries) -> str:
        """Copy a run and say what was done; one that is there as it is stays.

        An earlier copy that is of another analysis, or was cut short, is marked as deleted, as
        MLflow does it: `mlflow.tracking.MlflowClient.restore_run` brings it back.
        """
        experiment_id = self._experiment(run.experiment)
        earlier = self._client.search_runs(
            [experiment_id], f"tags.`{RUN_ID}` = '{run.run_id}'", max_results=AT_ONCE
        )
        if any(one.data.tags.get(DIGEST) == run.digest for one in earlier):
            return "already there"
        for one in earlier:
            self._client.delete_run(one.info.run_id)
        self._copy(run, experiment_id)
        return "copied again: its values are others now" if earlier else "copied"

    def _experiment(self, name: str) -> str:
        known = self._client.get_experiment_by_name(name)
        if known is not None:
            return str(known.experiment_id)
        folder = (self._artifacts / name.replace("/", "_")).as_uri()
        return str(self._client.create_experiment(name, artifact_location=folder))

    def _copy(self, run: Entries, experiment_id: str) -> None:
        client, entities = self._client, self._entities
        made = client.create_run(
            experiment_id, run.start_ms, run.tags, run_name=f"{run.experiment} {run.run_id}"
        )
        run_id = made.info.run_id
        parameters = [entities.Param(key, value) for key, value in run.parameters.items()]
        metrics = [
            entities.Metric(name, value, run.end_ms, 0) for name, value in run.metrics.items()
        ]
        for start in range(0, max(len(parameters), len(metrics)), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            client.log_batch(run_id, metrics=metrics[part], params=parameters[part])
        for file in run.files:
            client.log_artifact(run_id, str(file), "figures" if file.suffix == ".png" else None)
        client.set_tag(run_id, DIGEST, run.digest)
        client.set_terminated(run_id, end_time=run.end_ms)
