"""What an engine's running totals say of the time between two observations."""

from bellman.sensing.failure import NotReported
from bellman.sensing.observation import Observation


def require_reported(observation: Observation, law: object, *names: str) -> None:
    """Raise `NotReported` where the engine does not report one of the quantities."""
    missing = [name for name in names if getattr(observation, name) is None]
    if missing:
        raise NotReported(
            f"the law {type(law).__name__} needs {' and '.join(missing)}, which this engine does "
            "not report: choose another law, or an engine with such metrics (vLLM)"
        )


def growth(before: Observation, after: Observation, total: str) -> float | None:
    """Return how far a total went; None where it is not known or went back (a restart)."""
    start, end = getattr(before, total), getattr(after, total)
    return None if start is None or end is None or end < start else float(end - start)


def mean_s(before: Observation, after: Observation, delay: str) -> float | None:
    """Return the mean delay (`queue_delay`, `ttft` or `e2e`) of what was counted in between.

    In seconds; None where nothing was. It lags: a delay is counted when it is over.
    """
    seconds = growth(before, after, f"{delay}_sum_s")
    requests = growth(before, after, f"{delay}_count")
    return seconds / requests if seconds is not None and requests else None
