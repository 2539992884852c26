"""The Terraform files as values. Without its provider `terraform validate` does not run here."""

from pathlib import Path
from typing import Any

import hcl2

SERVERLESS = Path(__file__).parents[2] / "deploy" / "serverless"


def _plain(value: Any) -> Any:
    """Return a parsed value without the parser's own marks and the quotes of strings."""
    if isinstance(value, dict):
        return {
            _plain(key): _plain(entry) for key, entry in value.items() if not key.startswith("__")
        }
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if isinstance(value, str) and value.startswith('"'):
        return value[1:-1].replace('\\"', '"')
    return value


def blocks(kind: str) -> dict[str, Any]:
    """Return the blocks of a kind in all files, by their labels joined with dots."""
    found: dict[str, Any] = {}
    for file in sorted(SERVERLESS.glob("*.tf")):
        with file.open() as text:
            for block in _plain(hcl2.load(text)).get(kind, []):
                found |= _labelled(block)
    return found


def _labelled(block: dict[str, Any]) -> dict[str, Any]:
    ((label, inner),) = block.items()
    if len(inner) == 1 and isinstance(next(iter(inner.values())), dict):
        return {f"{label}.{name}": value for name, value in _labelled(inner).items()}
    return {label: inner}
