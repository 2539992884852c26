"""Why there is no observation."""


class SensorFailed(Exception):
    """The engine's load cannot be known now; says why in one line."""
