"""From a configuration to a finished run folder: identity, procedure, presentation, status."""

from pathlib import Path
from typing import Any

from hydra.utils import get_method
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from bellman import provenance
from bellman.corpus.base import Corpus
from bellman.engines.base import Engine
from bellman.records import write_json
from bellman.run_folder import RunFolder, claim_folder, reached, run_id
from bellman.settings import Settings, identity_values, read_settings


def execute(config: DictConfig, console: Console) -> Path:
    """Run what the configuration says, or show what the same run left earlier.

    Raises `ConfigError` before anything runs, `RunError` when it cannot go on.
    """
    settings = read_settings(config)
    corpus = settings.corpus.load()
    identity = run_id(identity_values(config), provenance.code_digest(), corpus.digest)
    path = folder_path(settings, identity)
    engine = settings.engine.create(corpus, path)
    present = get_method(settings.run.presentation)
    status = reached(path, identity)
    if status == "done":
        console.print(f"{path} holds this very run, finished; shown again:")
        present(path, console, draw=False)
        return path
    if status == "recorded":
        folder = RunFolder(path, identity)
    else:
        folder = claim_folder(path, identity)
        (path / "config.yaml").write_text(OmegaConf.to_yaml(config, resolve=True))
        made_with = provenance.collect(corpus=describe_corpus(corpus))
        write_provenance(path, made_with, engine)
        try:
            get_method(settings.run.procedure)(settings, corpus, engine, folder, console)
        except BaseException as error:
            end_early(folder, error)
            raise
        finally:
            write_provenance(path, made_with, engine)  # now with what the engine found out
        folder.set_status("recorded")
    present(path, console, draw=True)
    folder.set_status("done")
    return path


def describe_corpus(corpus: Corpus) -> dict[str, Any]:
    """Return what provenance.json says of the corpus."""
    return {
        "name": corpus.name,
        "documents": len(corpus.documents),
        "left_out": corpus.left_out,
        "licence": corpus.licence,
        "digest": corpus.digest,
    }


def write_provenance(path: Path, made_with: dict[str, Any], engine: Engine) -> None:
    """Write provenance.json: the machine and code at the start, the engine as it is now."""
    write_json({**made_with, "engine": engine.describe()}, path / "provenance.json")


def folder_path(settings: Settings, identity: str) -> Path:
    """Return where the run is written."""
    if settings.run.folder is not None:
        return Path(settings.run.folder)
    return Path(settings.run.outputs) / settings.run.name / identity


def end_early(folder: RunFolder, error: BaseException) -> None:
    """Say in status.json how the run ended; its records are on disk already."""
    if isinstance(error, KeyboardInterrupt):
        folder.set_status("interrupted", "interrupted by the user")
    else:
        folder.set_status("failed", f"{type(error).__name__}: {error}")
