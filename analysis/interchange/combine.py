"""Puts runs and other tools' results into one folder, which the analysis reads like any run."""

import json
from pathlib import Path

import pyarrow as pa

from analysis import read
from analysis.frames import load_run
from analysis.interchange import aiperf, vllm_bench
from analysis.interchange.records import Row, episodes, texts
from analysis.summarize import jsonable, summary
from bellman.errors import RunError
from bellman.records import REQUESTS, write_json, write_parquet


def export(folder: Path) -> list[Path]:
    """Write every episode of a run folder as AIPerf and as vLLM would; returns the files."""
    target = folder / "interchange"
    target.mkdir(exist_ok=True)
    answers = texts(folder)
    files = []
    for arm, repeat, rows in episodes(folder):
        name = f"{arm.replace(' ', '_')}-{repeat}"
        lines = target / f"{name}.profile_export.jsonl"
        lines.write_text(
            "".join(json.dumps(aiperf.to_line(request, name)) + "\n" for request in rows)
        )
        result = target / f"{name}.vllm_bench.json"
        write_json(vllm_bench.to_result(rows, answers, arm), result)
        files += [lines, result]
    return files


def combine(target: Path, sources: list[tuple[str, Path]]) -> None:
    """Write records, arms, episodes and summary of all sources into a new folder.

    A source is AIPerf's profile_export.jsonl, vLLM's detailed result JSON, or a run folder, whose
    arms keep their names behind the source's. The summary is over the repeats that all of them
    have.
    """
    rows: list[Row] = []
    ended: list[Row] = []
    for name, path in sources:
        found = _read(name, path)
        rows += found
        ended += _ended(name, path, found)
    target.mkdir(parents=True)
    write_json(ended, target / "episodes.json")
    write_parquet(pa.Table.from_pylist(rows, REQUESTS), target / "requests.parquet")
    arms = list(dict.fromkeys(request["arm"] for request in rows))
    write_json({"baseline": arms[0], "arms": arms}, target / "study.json")
    write_json(jsonable(summary(load_run(target))), target / "summary.json")


def _ended(name: str, path: Path, rows: list[Row]) -> list[Row]:
    """Return the episodes that ended; another tool writes its file once it has ended."""
    if path.is_dir():
        episodes = read.json_file(path / "episodes.json", [])
        return [{"repeat": e["repeat"], "arm": f"{name} {e['arm']}"} for e in episodes]
    found = dict.fromkeys((request["repeat"], request["arm"]) for request in rows)
    return [{"repeat": repeat, "arm": arm} for repeat, arm in found]


def _read(name: str, path: Path) -> list[Row]:
    if path.is_dir():
        return [
            request | {"arm": f"{name} {arm}"}
            for arm, _, rows in episodes(path)
            for request in rows
        ]
    if path.suffix == ".jsonl":
        return aiperf.read(path, name)
    if path.suffix == ".json":
        return vllm_bench.read(path, name)
    raise RunError(f"{path}: give a profile_export.jsonl, a vllm bench .json, or a run folder")
