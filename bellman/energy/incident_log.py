"""The incidents of a meter: one that goes on is one incident."""

from bellman.energy.base import Incident

SAME_WITHIN_S = 2.5
"""The same again after at most so long is taken as going on."""


class IncidentLog:
    """Takes what went wrong, as it does."""

    def __init__(self) -> None:
        self._all: list[Incident] = []
        self._last_of: dict[str, int] = {}

    def note(self, text: str, start_s: float, end_s: float) -> None:
        """Note that something was so from `start_s` to `end_s`."""
        index = self._last_of.get(text)
        if index is not None and start_s - self._all[index].end_s <= SAME_WITHIN_S:
            began_s = min(start_s, self._all[index].start_s)
            self._all[index] = Incident(text, began_s, max(end_s, self._all[index].end_s))
            return
        self._last_of[text] = len(self._all)
        self._all.append(Incident(text, start_s, end_s))

    def note_whole_episode(self, text: str) -> None:
        """Note something that makes every window doubtful."""
        self._all.append(Incident(text))

    @property
    def incidents(self) -> list[Incident]:
        """All of them, in the order in which they began."""
        return list(self._all)

    def whole_episode(self) -> list[str]:
        """Return the texts of those that concern every window."""
        return [incident.text for incident in self._all if incident == Incident(incident.text)]

    def described(self, origin_s: float) -> list[str]:
        """Return them in words, times in seconds after `origin_s`."""
        return [incident.described(origin_s) for incident in self._all]
