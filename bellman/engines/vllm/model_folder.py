"""What a model folder must hold before a server is started on it."""

import json
from pathlib import Path

from bellman.errors import RunError

REMEDY = "run `python scripts/prepare_model.py`, or name a hub id or another folder"


def names_a_folder(model: str) -> bool:
    """Tell a path (`./m`, `/m`, `models/m`) from a hub id (`owner/name`)."""
    path = Path(model)
    return path.is_absolute() or model.startswith((".", "~", "models/")) or path.is_dir()


def check_model_folder(folder: Path, needs_weights: bool = True) -> None:
    """Raise `RunError` unless the folder holds a configuration, a tokenizer and all its weights."""
    if not folder.is_dir():
        raise RunError(f"model folder {folder} is not there: {REMEDY}")
    if not (folder / "config.json").is_file():
        raise RunError(f"model folder {folder} has no config.json: {REMEDY}")
    if not any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer.model")):
        raise RunError(f"model folder {folder} has no tokenizer: {REMEDY}")
    missing = missing_weights(folder) if needs_weights else []
    if missing:
        raise RunError(f"model folder {folder} lacks {', '.join(missing)}: {REMEDY}")


def missing_weights(folder: Path) -> list[str]:
    """Return the weight files that are not there (or empty), as its own index names them."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    elif any(folder.glob("*.safetensors")):
        names = sorted(path.name for path in folder.glob("*.safetensors"))
    elif any(folder.glob("*.bin")):
        names = sorted(path.name for path in folder.glob("*.bin"))
    else:
        return ["*.safetensors"]
    return [name for name in names if not is_filled(folder / name)]


def is_filled(path: Path) -> bool:
    """Tell whether the file is there and not empty."""
    return path.is_file() and path.stat().st_size > 0
