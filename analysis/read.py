"""Reads the files of a run folder; one that cannot be read is a `RunError` that names it."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from bellman.errors import RunError


def json_file(path: Path, default: Any) -> Any:
    """Return the content of a JSON file, or `default` where there is none.

    It must be of the default's kind: an object, or a list.
    """
    if not path.exists():
        return default
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise unreadable(path, error) from None
    kind = "list" if isinstance(default, list) else "object"
    if not isinstance(content, list if kind == "list" else dict):
        raise unreadable(path, ValueError(f"it is no JSON {kind}"))
    return content


def parquet(path: Path) -> pa.Table:
    """Return the table of a parquet file."""
    try:
        return pq.read_table(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise unreadable(path, error) from None


def parquet_file(path: Path) -> pq.ParquetFile:
    """Return a parquet file that is read in parts."""
    try:
        return pq.ParquetFile(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise unreadable(path, error) from None


def frame(path: Path) -> pd.DataFrame:
    """Return a parquet file as a frame, empty where there is none."""
    return parquet(path).to_pandas() if path.exists() else pd.DataFrame()


def config(path: Path) -> dict[str, Any]:
    """Return a run's configuration, empty where there is none.

    Runs write it resolved. An interpolation that stands in it all the same stays its own text: in a
    folder that somebody sent it could name the reader's environment variables.
    """
    if not path.exists():
        return {}
    try:
        content = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    except (OSError, ValueError, RecursionError, YAMLError, OmegaConfBaseException) as error:
        raise unreadable(path, error) from None
    if not isinstance(content, dict):
        raise RunError(f"{path} cannot be read (no mapping of keys): restore it or run again")
    return {str(key): value for key, value in content.items()}


def unreadable(path: Path, error: Exception) -> RunError:
    """Return the error of a file that is there and cannot be used."""
    reason = (str(error) or type(error).__name__).splitlines()[0]
    return RunError(f"{path} cannot be read ({reason}): restore it or run again")
