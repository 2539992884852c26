"""Opens the store that a URL names."""

from bellman.errors import ConfigError
from bellman.store.base import SignalStore


def open_store(url: str, deadline_s: float) -> SignalStore:
    """Return the store at `redis://HOST:PORT/0`, `unix://PATH` or `dynamodb://TABLE`.

    A call that takes longer than `deadline_s` fails. Raises `ConfigError`.
    """
    scheme, _, rest = url.partition("://")
    try:
        if scheme in ("redis", "rediss", "unix") and rest:
            from bellman.store.redis import RedisStore  # noqa: PLC0415  # an extra

            return RedisStore(url, deadline_s)
        if scheme == "dynamodb" and rest:
            from bellman.store.dynamodb import DynamoStore  # noqa: PLC0415  # an extra

            return DynamoStore(rest, deadline_s)
    except ImportError as error:
        extra = "dynamodb" if scheme == "dynamodb" else "redis"
        remedy = f"pip install -c constraints.txt -e '.[{extra}]'"
        raise ConfigError("--store", scheme, f"{error}: {remedy}") from None
    except Exception as error:  # of boto3 without a region, of redis for a wrong database
        raise ConfigError("--store", scheme, str(error)) from None
    # The value is not shown: it may hold a password.
    raise ConfigError(
        "--store", "...", "must be redis://HOST:PORT/0, unix://PATH, dynamodb://TABLE"
    )
