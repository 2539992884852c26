"""Claims run folders in a process of its own, for tests: one line of answer a line of request.

Each request names a folder, and the time to claim it at; `--no-locks` stands for a file system
without locks.
"""

import errno
import fcntl
import os
import sys
import time
from pathlib import Path

from bellman.errors import RunError
from bellman.run_folder import claim_folder


def no_locks(*_: object) -> None:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def main() -> None:
    if "--no-locks" in sys.argv:
        fcntl.flock = no_locks
    print("ready", flush=True)
    for line in sys.stdin:
        at_s, _, path = line.strip().partition(" ")
        while time.time() < float(at_s):
            pass
        try:
            claim_folder(Path(path), "identity")
            print("won", flush=True)
        except RunError as error:
            print(error, flush=True)


if __name__ == "__main__":
    main()
