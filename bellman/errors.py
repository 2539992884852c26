"""The errors a user can cause; `run.py` prints each as one line, never as a traceback."""


class ConfigError(ValueError):
    """A configuration value that cannot be run: names the key, the value and what is allowed."""

    def __init__(self, key: str, value: object, allowed: str) -> None:
        super().__init__(key, value, allowed)  # all of them: it travels between processes
        self.key = key
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.key}={self.value}: {self.allowed}"


class RunError(RuntimeError):
    """A run that cannot start or go on, with its remedy in one line; what was recorded stays."""


def require(condition: bool, key: str, value: object, allowed: str) -> None:
    """Raise `ConfigError` unless `condition` holds; for `__post_init__` of config dataclasses."""
    if not condition:
        raise ConfigError(key, value, allowed)


def in_one_line(error: BaseException, longest: int = 300) -> str:
    """Return an error of someone else's as a line: its kind and the beginning of what it says."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:longest]
