"""The process's limit of open files: every request that is out holds a connection."""

import resource

ENOUGH = 65_535
"""More than any engine here has requests outstanding; what vLLM asks for itself, too."""


def allow_open_files() -> int:
    """Raise the soft limit towards `ENOUGH`, as far as the hard limit lets; return what it is.

    The usual 1,024 is less than an overloaded engine has requests waiting. Children inherit it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(ENOUGH, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft
