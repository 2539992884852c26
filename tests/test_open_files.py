"""The limit of open files, in a process of its own."""

import subprocess
import sys

SCRIPT = """
import resource
from bellman.open_files import allow_open_files

resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
print(allow_open_files(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def limit_after(soft: int, hard: int) -> list[int]:
    script = SCRIPT.format(soft=soft, hard=hard)
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    return [int(word) for word in result.stdout.split()]


def test_it_is_raised_as_far_as_the_hard_limit_lets():
    assert limit_after(100, 900) == [900, 900]


def test_it_is_never_lowered():
    assert limit_after(900, 900) == [900, 900]
