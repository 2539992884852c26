"""From a configuration to a finished run folder: identity, procedure, presentation, status."""

import contextlib
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.utils import get_method
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from analysis.present import SCORED
from analysis.score import QUALITY_FILE
from bellman import interruption, provenance
from bellman.app.budget import BudgetRules
from bellman.app.obedience import asked_words
from bellman.build import find_target
from bellman.corpus.base import Corpus
from bellman.engines.base import Engine
from bellman.episode import Arm
from bellman.errors import ConfigError, RunError
from bellman.quality.score import score_folder
from bellman.records import write_json, write_text
from bellman.redact import conceal, learn, redact
from bellman.run_folder import (
    DONE,
    FAILED,
    INTERRUPTED,
    RECORDED,
    RunFolder,
    claim_folder,
    reached,
    run_id,
)
from bellman.settings import Settings, identity_values, read_settings
from experiments.preflight import check_end, check_room


@dataclass(frozen=True)
class Prepared:
    """A run that is known to be able to start."""

    settings: Settings
    corpus: Corpus
    engine: Engine
    identity: str
    path: Path
    procedure: Callable[..., None]
    present: Callable[..., None]


def prepare(config: DictConfig) -> Prepared:
    """Check everything that can be checked before anything runs; raises `ConfigError`.

    Loads the corpus and the response bank, but starts no engine and writes nothing.
    """
    settings = read_settings(config)
    procedure = find_target(settings.run.procedure, "procedure", get_method)
    present = find_target(settings.run.presentation, "presentation", get_method)
    corpus = settings.corpus.load()
    identity = run_id(identity_values(config), provenance.code_digest(), corpus.digest)
    path = folder_path(settings, identity)
    engine = settings.engine.create(corpus, path)
    for arm in settings.arms:
        check_asked_words(settings.application, arm, engine)
    return Prepared(settings, corpus, engine, identity, path, procedure, present)


def execute(
    config: DictConfig, console: Console, claimed: Callable[[Path], None] = lambda _: None
) -> Path:
    """Run what the configuration says, or show what the same run left earlier.

    `claimed` is told the folder as soon as it is this run's. Raises `ConfigError` before anything
    runs, `RunError` when it cannot go on.
    """
    with interruption.interruptible():
        run = prepare(config)
        done = reached(run.path, run.identity) == DONE
        if not done:
            check_room(run.path)
            check_end(run.present)
    if not done:
        with claim_folder(run.path, run.identity) as folder:
            claimed(run.path)
            if folder.found is None:
                record(run, config, folder, console)
            if folder.found != DONE:
                finish(run, folder, console)
                return run.path
    claimed(run.path)
    console.print(f"{run.path} holds this very run, finished; shown again:", markup=False)
    with interruption.interruptible():
        run.present(run.path, console, draw=False)
    return run.path


def record(run: Prepared, config: DictConfig, folder: RunFolder, console: Console) -> None:
    """Run the procedure; whatever happens, status and provenance say so."""
    try:
        values = OmegaConf.to_container(config, resolve=True)
        learn(values)
        write_text(OmegaConf.to_yaml(redact(values)), run.path / "config.yaml")
        made_with = provenance.collect(corpus=describe_corpus(run.corpus))
        write_provenance(run.path, made_with, run.engine)
        console.print(f"records: {run.path}", markup=False, soft_wrap=True)
        try:
            run.procedure(run.settings, run.corpus, run.engine, folder, console)
        finally:
            with contextlib.suppress(OSError):  # a full disk must not hide the run's own failure
                write_provenance(run.path, made_with, run.engine)  # with what the engine found out
        folder.set_status(RECORDED)
    except BaseException as error:
        end_early(folder, error)
        show_what_there_is(run, console)
        raise


def finish(run: Prepared, folder: RunFolder, console: Console) -> None:
    """Make everything that comes from the records; what fails here can be made from them later."""
    rest = f"every record is there; python -m analysis.present {run.path} makes the rest"
    try:
        with interruption.interruptible():
            if run.present in SCORED and not (run.path / QUALITY_FILE).exists():
                score_folder(run.path, run.corpus, run.settings.quality)
            run.present(run.path, console, draw=True)
        folder.set_status(DONE)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(rest) from None
    except Exception as error:
        reason = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
        with contextlib.suppress(OSError):
            folder.set_status(RECORDED, f"results could not be made: {reason}")
        if not isinstance(error, RunError | OSError):
            with contextlib.suppress(OSError):
                text = "".join(traceback.format_exception(error))
                write_text(conceal(text), run.path / "traceback.txt")
        raise RunError(f"the results could not be made ({reason}), but {rest}") from error


def check_asked_words(rules: BudgetRules, arm: Arm, engine: Engine) -> None:
    """Refuse, before anything runs, budgets that the engine's response bank has no answers for."""
    for budget_words in rules.ladder_words:
        asked = asked_words(budget_words, calibrated=arm.calibrated, obedience=engine.obedience)
        if engine.source == "simulated" and engine.obedience and asked not in engine.obedience:
            raise ConfigError(
                "application.default_words",
                rules.default_words,
                f"its budget of {asked} words is not in the response bank, which has "
                f"{', '.join(map(str, engine.obedience))}; choose default_words and ladder_ratio "
                "by those, or engine/bank=extractive",
            )


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


def show_what_there_is(run: Prepared, console: Console) -> None:
    """Write and print the summary of a run that ended early, as far as its records go.

    The second signal does without it.
    """
    heeded = interruption.signals_received()
    if heeded > 1:
        return
    try:
        with interruption.interruptible(heeded):
            run.present(run.path, console, draw=True)
    except KeyboardInterrupt:
        return
    except Exception as error:  # the run's own failure is what the user must see
        console.print(conceal(f"no summary of what was recorded: {error}"), markup=False)


def end_early(folder: RunFolder, error: BaseException) -> None:
    """Say in status.json how the run ended; its records are on disk already.

    On a full disk that may fail, too: then the run stands there as `running` by a dead process.
    """
    with contextlib.suppress(OSError):
        if isinstance(error, KeyboardInterrupt):
            folder.set_status(INTERRUPTED, "interrupted by the user")
        else:
            folder.set_status(FAILED, f"{type(error).__name__}: {error}")
