"""Whether prompts were found in the prefix cache, as the episodes say it, for all results."""

from collections.abc import Iterable, Mapping
from typing import Any


def found_in(episodes: Iterable[Mapping[str, Any]]) -> str | None:
    """Return `off`, or `on` with how it was kept fair between episodes; None where none says it."""
    ways = {str(way) for episode in episodes if (way := episode.get("prefix_cache"))}
    if not ways:
        return None
    return "off" if ways == {"disabled"} else f"on ({', '.join(sorted(ways))})"


def of_points(points: Iterable[Mapping[str, Any]]) -> str | None:
    """Return what the points of a study say, each once; None where none says it."""
    found = dict.fromkeys(way for point in points if (way := point.get("prefix_caching")))
    return ", at other points ".join(found) or None


def in_words(found: str | None) -> str:
    """Return the words that stand beside a result."""
    return f"prefix caching {found}" if found else "prefix caching n/a (the records do not say it)"
