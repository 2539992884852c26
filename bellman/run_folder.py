"""The folder of one run: its identity, its status, and who may write into it."""

import hashlib
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from bellman.errors import RunError
from bellman.records import write_json

STATUS = "status.json"
IDENTITY_LENGTH = 12


def run_id(config: dict[str, Any], code_digest: str, corpus_digest: str) -> str:
    """Return the run's identity: a hash of everything that determines its records.

    `config` is the resolved configuration without output paths; the seed is part of it.
    """
    identity = json.dumps([config, code_digest, corpus_digest], sort_keys=True, default=str)
    return hashlib.sha256(identity.encode()).hexdigest()[:IDENTITY_LENGTH]


@dataclass(frozen=True)
class RunFolder:
    """A folder that this process may write into."""

    path: Path
    identity: str

    def set_status(self, status: str, reason: str | None = None) -> None:
        """Write status.json: `running`, `interrupted`, `failed`, `recorded`, and last `done`."""
        process = psutil.Process()
        write_json(
            {
                "status": status,
                "run_id": self.identity,
                "reason": reason,
                "process_id": process.pid,
                "process_started_s": process.create_time(),
                "time_utc": datetime.now(UTC).isoformat(timespec="seconds"),
            },
            self.path / STATUS,
        )


def read_status(path: Path) -> dict[str, Any] | None:
    """Return a folder's status.json, or None when it has none."""
    status = path / STATUS
    if not status.exists():
        return None
    content: dict[str, Any] = json.loads(status.read_text())
    return content


def reached(path: Path, identity: str) -> str | None:
    """Return the status of this very run in the folder, or None where it is not this run's."""
    status = read_status(path)
    if status is None or status["run_id"] != identity:
        return None
    return str(status["status"])


def claim_folder(path: Path, identity: str) -> RunFolder:
    """Make the folder ours. What an earlier, unfinished try recorded is moved aside, never lost.

    Raises `RunError` when the folder holds another run, or a live process writes into it.
    """
    status = read_status(path)
    if status is None and path.exists() and any(path.iterdir()):
        raise RunError(f"{path} is not empty and is no run folder: choose another `folder`")
    if status is not None:
        if status["run_id"] != identity:
            raise RunError(
                f"{path} holds run {status['run_id']}, this is run {identity}: "
                "choose another `folder`, or remove that one"
            )
        if status["status"] == "running" and alive(status):
            raise RunError(
                f"{path} is being written by process {status['process_id']}: wait for it"
            )
        path.rename(_free_name(path))
    path.mkdir(parents=True, exist_ok=True)
    folder = RunFolder(path, identity)
    folder.set_status("running")
    return folder


def alive(status: dict[str, Any]) -> bool:
    """Whether another process wrote the status and still runs (and is no later one of its id)."""
    process_id = int(status["process_id"])
    if process_id == os.getpid():
        return False
    try:
        started_s = psutil.Process(process_id).create_time()
    except psutil.Error:
        return False
    return abs(started_s - float(status["process_started_s"])) < 1.0


def _free_name(path: Path) -> Path:
    """Return the first free `<path>.unfinished-<n>`."""
    number = 1
    while (candidate := path.with_name(f"{path.name}.unfinished-{number}")).exists():
        number += 1
    return candidate
