"""Counts tokens as a model does."""

from collections.abc import Callable
from pathlib import Path


def token_counter(model: str) -> Callable[[str], int] | None:
    """Return a function that counts a text's tokens, or None without the model's tokenizer here.

    A folder's own tokenizer.json, or that of a hub id (downloaded once). The tokens that a chat
    template adds around a prompt are not counted.
    """
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415 - comes with vLLM
    except ImportError:
        return None
    file = Path(model) / "tokenizer.json"
    try:
        tokenizer = (
            Tokenizer.from_file(str(file)) if file.is_file() else Tokenizer.from_pretrained(model)
        )
    except Exception:  # the Rust library raises bare Exception for whatever goes wrong
        return None
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
