"""Why there is no observation, or none that a law could use."""


class SensorFailed(Exception):
    """The engine's load cannot be known now; says why in one line."""


class AskedFor(SensorFailed):
    """A failure that an experiment asked for: nobody needs to be told."""


class NotReported(Exception):
    """A law needs what this engine does not report; names it in one line."""
