"""Checking a model folder from the command line; the conversion itself is part of the set-up."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", ["whole", "without weights", "not there"])
async def test_a_folder_is_checked(tmp_path, kind):
    folder = tmp_path / "model"
    if kind != "not there":
        folder.mkdir()
        names = ["config.json", "tokenizer.json"]
        for name in [*names, *(["model.safetensors"] if kind == "whole" else [])]:
            (folder / name).write_text("{}")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(ROOT / "scripts" / "prepare_model.py"), str(folder)),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    if kind == "whole":
        assert (process.returncode, output.decode().split(": ")[1][:5]) == (0, "whole")
    else:
        assert process.returncode == 1
        assert errors.decode().startswith(f"error: model folder {folder} ")
        assert errors.decode().count("\n") == 1
