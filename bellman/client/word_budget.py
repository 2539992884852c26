"""How many words an application asks for now, by the levels that its responses brought."""

import logging
import threading
import time
from collections.abc import Callable, Sequence

from bellman.adaptation.base import Adaptation
from bellman.app.ask import Ask, decide
from bellman.app.budget import BudgetRules
from bellman.signal import SignalReceiver

logger = logging.getLogger(__name__)


class WordBudget:
    """The experiment's application end of the signal, for any number of threads.

    A level that was received more than `forget_after_s` ago counts as none. `clock` gives seconds.
    """

    def __init__(
        self,
        rules: BudgetRules,
        adaptation: Adaptation,
        *,
        forget_after_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rules = rules
        self._adaptation = adaptation
        self._forget_after_s = forget_after_s
        self._clock = clock
        self._lock = threading.Lock()
        self._receiver = SignalReceiver()
        self._failures = 0

    def receive(self, header_values: Sequence[str]) -> None:
        """Take all values of `x-bellman-congestion` in a response that arrives now."""
        with self._lock:
            self._receiver.receive(header_values, self._clock())

    def ask(self) -> Ask:
        """Return what to ask for in a request sent now, on which level, and that level's age.

        An adaptation that raises costs no request: the default is asked for, and it is counted.
        """
        with self._lock:
            signal, now_s = self._receiver.last, self._clock()
        if signal is not None and now_s - signal.time_s > self._forget_after_s:
            signal = None
        try:
            return decide(signal, now_s, self._adaptation, self._rules)
        except Exception as error:
            self._count_failure(error)
            return Ask(None, None, self._rules.default_words)

    @property
    def words(self) -> int:
        """Words to ask for now."""
        return self.ask().word_budget

    def max_tokens(self, words: int) -> int:
        """Return a limit of tokens that only an answer far longer than asked for meets."""
        return self._rules.max_tokens(words)

    @property
    def level(self) -> float | None:
        """The last level received; None before the first, and once it is forgotten."""
        return self.ask().level

    @property
    def level_age_s(self) -> float | None:
        """Seconds since that level was received."""
        return self.ask().level_age_s

    @property
    def counts(self) -> dict[str, int]:
        """Responses by what they brought (a level, no header, one that is malformed), failures."""
        with self._lock:
            return {
                "received": self._receiver.received,
                "absent": self._receiver.absent,
                "malformed": self._receiver.malformed,
                "failures": self._failures,
            }

    def _count_failure(self, error: Exception) -> None:
        with self._lock:
            self._failures += 1
            first = self._failures == 1
        if first:
            logger.warning("the adaptation failed, so the default is asked for: %r", error)
