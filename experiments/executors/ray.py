"""Runs cells on a Ray cluster, or on a Ray of its own on this machine.

The nodes share no files with this machine: the code is sent to them, the records come back. A node
needs the dependencies, and the input files that the configuration names.
"""

import logging
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from joblib import cpu_count

from bellman import provenance, supervise
from bellman.errors import RunError, require
from bellman.records import write_bytes
from bellman.run_files import DONE
from bellman.schema import schema
from experiments.cells.inputs import input_digests
from experiments.executors.away import Delivered, run_away
from experiments.executors.base import OnOutcome, Place
from experiments.executors.progress import CellsProgress
from experiments.executors.worker import ONE_THREAD
from experiments.perform import ERROR, Outcome, Planned, failed, make_room

RETRIES = 3
"""So many times a cell may lose its node or its process."""
HOST_AND_PORT = re.compile(r"([^/:]+):(\d{1,5})")
ANSWERS_WITHIN_S = 5.0
STARTS_WITHIN_S = 120.0
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else a FutureWarning
}


@schema
class RayCluster:
    """As many cells at once as the cluster has cores."""

    address: str | None = None
    """Of a running cluster; None starts one on this machine, which ends with the run."""

    def __post_init__(self) -> None:
        """Check the form, and that Ray is there; importing it takes seconds."""
        require(find_spec("ray") is not None, "", "ray", "needs the extra `ray`")
        form = self.address in (None, "auto") or HOST_AND_PORT.fullmatch(self.address)
        require(bool(form), "address", self.address, "must be host:port, auto or null")

    @property
    def parallel(self) -> bool:
        """Whether it runs several cells at once."""
        return True

    @contextmanager
    def at(self, place: Place) -> Iterator["RayHands"]:
        """Begin to work at a place."""
        with (
            connected(self.address) as ray,
            CellsProgress(place.console, place.source) as progress,
        ):
            task = ray.remote(num_cpus=1, max_retries=RETRIES)(run_away)
            yield RayHands(place.folder, ray, task, progress)


@contextmanager
def connected(address: str | None) -> Iterator[ModuleType]:
    """Connect to a cluster, or start one; on the way out everything that was started here ends."""
    os.environ.update(QUIET)
    if address is None:
        make_token()
    import ray  # noqa: PLC0415 - an extra, and slow

    if ray.is_initialized():
        raise RunError("executor=ray does not work inside Ray: choose another launcher or executor")
    on_sigterm = signal.getsignal(signal.SIGTERM)
    with ExitStack() as ends:
        folder = Path(ends.enter_context(TemporaryDirectory(prefix="bellman-")))
        where = address or ends.enter_context(own_cluster(folder / "ray"))
        try:
            connect(ray, where, copy_code(folder))
            signal.signal(signal.SIGTERM, on_sigterm)  # Ray took it
            yield ray
        finally:
            ray.shutdown()
            signal.signal(signal.SIGTERM, on_sigterm)


def make_token() -> None:
    """Give the clusters that this process starts a token: who reaches one without runs code on it.

    Ray reads it when it is imported.
    """
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


@contextmanager
def own_cluster(folder: Path) -> Iterator[str]:
    """Start Ray on this machine, with its files in `folder`, and yield its address.

    Under a supervisor: Ray's agents outlive a killed Ray by a minute.
    """
    command = [
        sys.executable,
        "-m",
        supervise.__name__,
        sys.executable,
        "-m",
        "ray.scripts.scripts",
    ]
    command += ["start", "--head", "--block", "--port=0", "--include-dashboard=false"]
    command += [f"--num-cpus={cpu_count()}", f"--temp-dir={folder}", "--disable-usage-stats"]
    head = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # the terminal's Ctrl-C is this process's to answer
    )
    try:
        address = folder / "ray_current_cluster"
        deadline_s = time.monotonic() + STARTS_WITHIN_S
        while not (address.exists() and address.read_text().strip()):
            if head.poll() is not None or time.monotonic() > deadline_s:
                raise RunError(f"executor=ray: Ray does not start on this machine; see {folder}")
            time.sleep(0.05)
        yield address.read_text().strip()
    finally:
        head.communicate()  # closes its input: it ends all that it started


def connect(ray: Any, address: str, code: str) -> None:
    """Connect to the cluster at an address, and send it the code."""
    if parts := HOST_AND_PORT.fullmatch(address):
        try:  # Ray itself tries for minutes
            socket.create_connection((parts[1], int(parts[2])), ANSWERS_WITHIN_S).close()
        except (OSError, OverflowError) as error:
            raise RunError(f"executor.address={address}: nobody answers there: {error}") from None
    try:
        ray.init(
            address=address,
            runtime_env={"working_dir": code, "env_vars": ONE_THREAD},
            logging_level=logging.CRITICAL,
            log_to_driver=False,
        )
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        reason = str(error).strip().split("\n")[0]
        raise RunError(f"executor.address={address}: Ray does not answer: {reason}") from None


def copy_code(folder: Path) -> str:
    """Return a folder with a copy of the code that shapes records, for Ray to send around."""
    code = folder / "code"
    for name in provenance.CODE_FOLDERS:
        leave_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(provenance.ROOT / name, code / name, ignore=leave_out)
    return str(code)


@dataclass(frozen=True)
class RayHands:
    """See `experiments.executors.base.Hands`."""

    folder: Path
    ray: Any
    task: Any
    """`run_away` as Ray runs it."""
    progress: CellsProgress

    def run(self, plans: Sequence[Planned], on_outcome: OnOutcome) -> None:
        """Run the cells wherever there is room."""
        self.progress.expect(len(plans))
        waiting = deque(plans)
        running: dict[Any, Planned] = {}
        while waiting or running:
            # Enough that no core waits for this process; results not fetched yet fill memory.
            at_once = 2 * max(1, int(self.ray.cluster_resources().get("CPU", 1)))
            while waiting and len(running) < at_once:
                plan = waiting.popleft()
                running[self.begin(plan)] = plan
            (ended, *_), _ = self.ray.wait(list(running), num_returns=1)
            outcome, said = self.outcome(running.pop(ended), ended)
            self.progress.ended(outcome, said)
            on_outcome(outcome)

    def begin(self, plan: Planned) -> Any:
        """Hand a cell to the cluster."""
        digests = input_digests(plan.cell.specification())
        return self.task.remote(plan, digests, str(Path.cwd()), str(self.folder))

    def outcome(self, plan: Planned, ended: Any) -> tuple[Outcome, list[str]]:
        """Write the files of a cell that has ended, its last one last; return also what it said."""
        folder = plan.folder(self.folder)
        make_room(folder, keep=False)
        folder.mkdir(parents=True)
        try:
            delivered: Delivered = self.ray.get(ended)
        except self.ray.exceptions.RayTaskError as failure:
            if isinstance(failure.cause, RunError):
                raise RunError(str(failure.cause)) from None
            (folder / ERROR).write_text(traceback.format_exc())
            error = f"{type(failure.cause).__name__}: {failure.cause} ({folder / ERROR})"
            return failed(plan, folder, error), []
        except self.ray.exceptions.RayError as failure:
            (folder / ERROR).write_text(traceback.format_exc())
            reason = str(failure).strip().split("\n")[0]
            lost = f"lost {RETRIES + 1} times: {reason} ({folder / ERROR})"
            return failed(plan, folder, lost), []
        last = folder.relative_to(self.folder) / DONE
        for name in sorted(delivered.files, key=lambda name: name == last.as_posix()):
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(delivered.files[name], path)
        return Outcome(plan, folder, delivered.content, delivered.error), delivered.said
