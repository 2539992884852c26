"""A cell that does what a test wants: ends well, fails in one of many ways, or is killed."""

import errno
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from bellman.errors import ConfigError, RunError

BY_NAME = {
    "RunError": RunError("the engine is not there"),
    "ConfigError": ConfigError("q_low", 7, "must be less than q_high"),
    "ZeroDivisionError": ZeroDivisionError("division by zero"),
    "full disk": OSError(errno.ENOSPC, "No space left on device"),
}


@dataclass(frozen=True)
class Stub:
    label: str
    does: str = "end"
    marks: str = ""
    """Folder in which a process that is killed leaves a mark before."""
    source: str = "simulated"
    axes: dict[str, Any] = field(default_factory=dict)

    def specification(self):
        return {"label": self.label, "does": self.does}

    def run(self, folder, parts, watch):
        (folder / "records.txt").write_text(self.label)
        if self.does == "killed" or (self.does == "killed once" and self.first_try()):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.does == "waits":
            time.sleep(600)
        if self.does in BY_NAME:
            raise BY_NAME[self.does]
        watch.say(f"{self.label} was here")
        return {
            "process": os.getpid(),
            "loaded": id(parts),
            "threads": [os.environ["OMP_NUM_THREADS"], pa.cpu_count()],
        }

    def first_try(self) -> bool:
        mark = Path(self.marks) / self.label
        first = not mark.exists()
        mark.touch()
        return first
