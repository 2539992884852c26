"""From a configuration to a finished run folder: identity, study, presentation, status."""

import contextlib
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from analysis.made import is_made
from analysis.present import present
from bellman import interruption, provenance
from bellman.adaptation.base import form_of
from bellman.adaptation.static import Static
from bellman.app.budget import BudgetRules
from bellman.app.length_compliance import asked_words
from bellman.corpus.base import Corpus
from bellman.engines.base import Engine
from bellman.episode import Arm
from bellman.errors import ConfigError, RunError, require
from bellman.records import write_json, write_text
from bellman.redact import conceal, learn, redact
from bellman.responses.base import NO_CONCISE
from bellman.run_folder import (
    DONE,
    FAILED,
    INTERRUPTED,
    RECORDED,
    RUNNING,
    RunFolder,
    claim_folder,
    reached,
    run_id,
)
from bellman.settings import Settings, identity_values, read_settings
from experiments.executors.base import Place
from experiments.parts import Parts
from experiments.perform import Outcome
from experiments.preflight import check_end, check_room
from experiments.run_study import run_study


@dataclass(frozen=True)
class Prepared:
    """A run that is known to be able to start."""

    settings: Settings
    corpus: Corpus
    engine: Engine
    identity: str
    path: Path
    parts: Parts


def prepare(config: DictConfig) -> Prepared:
    """Check everything that can be checked before anything runs; raises `ConfigError`.

    Loads the corpus and the response bank, but starts no engine and writes nothing.
    """
    settings = read_settings(config)
    if settings.engine.source == "measured" and settings.executor.parallel:
        raise ConfigError(
            "executor",
            type(settings.executor).__name__,
            "must be serial for a real engine: two episodes at once would measure each other",
        )
    settings.study.check(settings)
    values = settings.values
    identity = run_id(identity_values(values))
    path = folder_path(settings, identity)
    parts = Parts(logs=path)
    corpus = parts.corpus(values["corpus"])
    engine = parts.engine(values["engine"], values["corpus"])
    for arm in settings.arms.values():
        check_asked_words(settings.application, arm, engine)
    return Prepared(settings, corpus, engine, identity, path, parts)


def execute(
    config: DictConfig,
    console: Console,
    claimed: Callable[[Path], None] = lambda _: None,
    *,
    draw: bool = True,
) -> Path:
    """Run what is missing of a configuration's study, and show what it found.

    `claimed` is told the folder as soon as it is this run's. Raises `ConfigError` before anything
    runs, `RunError` when it cannot go on or an episode failed.
    """
    learn(OmegaConf.to_container(config))
    with interruption.interruptible():
        run = prepare(config)
        learn(run.settings.values)
        if reached(run.path, run.identity) != DONE:
            check_room(run.path)
            check_end(type(run.settings.study).__name__, draw=draw)
    with claim_folder(run.path, run.identity) as folder:
        claimed(run.path)
        failures = record(run, folder, console)
        if failures:
            reason = failures_in_words(failures)
            folder.set_status(FAILED, reason)  # before it is shown: the failure comes first
        finish(run, folder, console, draw=draw)
        if failures:
            raise RunError(reason)
        if folder.found != DONE:
            folder.set_status(DONE)
    return run.path


def record(run: Prepared, folder: RunFolder, console: Console) -> list[Outcome]:
    """Run what is missing of the study; whatever happens, status and provenance say so."""
    try:
        made_with = provenance.collect(corpus=describe_corpus(run.corpus))

        def begin() -> None:
            """Prepare the folder for the first cell that is missing."""
            folder.set_status(RUNNING)
            console.print(f"records: {run.path}", markup=False, soft_wrap=True)
            write_provenance(run.path, made_with, run.engine)

        write_facts(run)
        failures, ran = run_study(
            run.settings, Place(run.path, console, run.engine.source, run.parts), begin
        )
        if ran or folder.found != DONE:  # what an earlier start ended with is over
            folder.set_status(RECORDED)
        if ran:
            write_provenance(run.path, made_with, run.engine)  # with what the engine found out
    except BaseException as error:
        end_early(folder, error)
        show_what_there_is(run, console)
        raise
    return failures


def write_facts(run: Prepared) -> None:
    """Write what the analysis must know besides the records: the study, and the configuration."""
    write_json(
        {
            "study": type(run.settings.study).__name__,
            "baseline": run.settings.run.baseline,
            "arms": list(run.settings.arms),
            "paper_arm": run.settings.run.paper_arm,
            **run.settings.study.facts(run.settings),
        },
        run.path / "study.json",
    )
    values = redact(dict(run.settings.values))
    write_text(OmegaConf.to_yaml(OmegaConf.create(values)), run.path / "config.yaml")


def finish(run: Prepared, folder: RunFolder, console: Console, *, draw: bool) -> None:
    """Make everything that comes from the records; what fails here can be made from them later."""
    rest = f"every record is there; python -m analysis.present {run.path} makes the rest"
    try:
        with interruption.interruptible():
            made = is_made(run.path)
            if made:
                console.print(
                    f"{run.path} holds this very run, finished; shown again:", markup=False
                )
            present(run.path, console, make=not made, draw=draw)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(rest) from None
    except Exception as error:
        reason = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
        with contextlib.suppress(OSError):
            folder.set_status(RECORDED, f"results could not be made: {reason}")
        if not isinstance(error, RunError | OSError):
            with contextlib.suppress(OSError):
                text = "".join(traceback.format_exception(error))
                write_text(text, run.path / "traceback.txt")
        raise RunError(f"the results could not be made ({reason}), but {rest}") from error


def failures_in_words(failures: list[Outcome]) -> str:
    """Return in one line which cells failed, and what to do."""
    named = "; ".join(f"{one.planned.cell.label}: {one.error}" for one in failures[:3])
    more = f"; and {len(failures) - 3} more" if len(failures) > 3 else ""
    count = "1 episode" if len(failures) == 1 else f"{len(failures)} episodes"
    return conceal(f"{count} failed ({named}{more}); the same command tries them again")


def check_asked_words(rules: BudgetRules, arm: Arm, engine: Engine) -> None:
    """Refuse, before anything runs, budgets that the engine's response bank has no answers for."""
    if arm.calibrated and not engine.length_compliance:
        raise ConfigError(
            f"arms.{arm.name}.adaptation.calibrated",
            True,
            "needs a recorded response bank (engine/bank=recorded)",
        )
    adaptation = arm.adaptation
    if form_of(adaptation) == "concise" and not engine.answers_concise:
        raise ConfigError(
            f"arms.{arm.name}.adaptation",
            type(adaptation).__name__,
            f"the response bank ({engine.response_source}) {NO_CONCISE}",
        )
    if isinstance(adaptation, Static):
        ladder = ", ".join(map(str, rules.ladder_words))
        key = f"arms.{arm.name}.adaptation.words"
        on_ladder = adaptation.words in rules.ladder_words
        require(on_ladder, key, adaptation.words, f"must be a budget of the application: {ladder}")
    for budget_words in rules.ladder_words:
        asked = asked_words(
            budget_words, calibrated=arm.calibrated, length_compliance=engine.length_compliance
        )
        if (
            engine.source == "simulated"
            and engine.length_compliance
            and asked not in engine.length_compliance
        ):
            raise ConfigError(
                "application.default_words",
                rules.default_words,
                f"its budget of {asked} words is not in the response bank, which has "
                f"{', '.join(map(str, engine.length_compliance))}; choose default_words and "
                "ladder_ratio by those, or engine/bank=extractive",
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
    with contextlib.suppress(OSError):  # a full disk must not hide the run's own failure
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
            present(run.path, console, draw=True)
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
