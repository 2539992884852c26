"""Fit performance profiles of the simulated engine, and write them as YAML.

    python scripts/fit_profile.py --tokenizer qwen3 \\
        --model Qwen/Qwen3-8B --name qwen3_8b_h100 --steps steps.csv --kv-blocks 23919

* `--steps`: step times of the model's kernels (`scripts/kernel_step_times.py` makes them), or
  measured ones (`scripts/calibrate_gpu.py`);
* `--steady`: measured steady states in ML.ENERGY's form; the ones in the package by default.

Give `--model`, `--name`, `--steps` and `--kv-blocks` once for every model of one tokenizer family:
the prompts of the steady states, which are not published, are fitted for all of them together. A
model is named as in the file of steady states; where that has it on several numbers of cards, give
`--gpus`, too.

Kernels are fitted on the steps; what serving adds, and energy, on every other steady state. The
rest are only judged. The mean prompt length is fitted for the tasks in `--fit-prompts`, and assumed
for the others.
"""

import argparse
import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from profile_yaml import to_yaml

from analysis.figures import kernel_fit, style
from bellman.engines.simulated.fit_energy import CARD_LIMIT_W, CARD_PLATEAU_W, fit_energy, watts
from bellman.engines.simulated.fit_kernels import fit_kernels
from bellman.engines.simulated.fit_serving import Served, fit_serving
from bellman.engines.simulated.front_end import FrontEnd
from bellman.engines.simulated.profile import FittedRange, Profile
from bellman.engines.simulated.steady_states import (
    MEASURED,
    Lengths,
    SteadyState,
    halves,
    read_steady_states,
    simulate,
)
from bellman.engines.simulated.step_energy import StepEnergy
from bellman.engines.simulated.step_time import StepTime
from bellman.errors import ConfigError, RunError, in_one_line, require

ASSUMED_PROMPTS = {"lm-arena-chat": 350.0, "gpqa": 250.0}
"""Tokens; the start of the fit, or what is assumed."""
OTHER_PROMPTS = 350.0
"""The same for tasks that are not named there."""
ASSUMED_VARIATION = 1.5
OPTIONAL = ("gpus", "kv_token_j")
"""Given for every model, or for none."""


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    each = {"action": "append", "required": True}
    parser.add_argument("--model", **each, help="the model's whole name in --steady")
    parser.add_argument("--name", **each, help="the profile's file name")
    parser.add_argument("--steps", type=Path, **each)
    parser.add_argument("--kv-blocks", type=int, **each)
    parser.add_argument("--gpus", type=int, action="append", default=[])
    parser.add_argument("--tokenizer", required=True, help="a name of the tokenizer's family")
    parser.add_argument("--steps-source", default="aiconfigurator-core 0.12.0, vLLM 0.24")
    parser.add_argument("--steady", type=Path, default=MEASURED)
    parser.add_argument("--steady-source", default="ML.ENERGY leaderboard v3, vLLM 0.11.1")
    parser.add_argument("--device", default="H100 SXM 80 GB")
    parser.add_argument("--idle-w", type=float, default=75.0, help="watts of one device")
    parser.add_argument("--card-limit-w", type=float, default=CARD_LIMIT_W, help="of one device")
    parser.add_argument(
        "--card-plateau-w", type=float, default=CARD_PLATEAU_W, help="when it is full"
    )
    parser.add_argument("--front-end-ms", type=float, default=20.0)
    parser.add_argument("--front-end-variation", type=float, default=0.4)
    parser.add_argument(
        "--kv-token-j",
        type=joules_or_fit,
        action="append",
        default=[],
        help="joules where no row can tell it, or `fit`: two tasks with other contexts tell it",
    )
    parser.add_argument("--fit-prompts", nargs="*", default=["lm-arena-chat"])
    parser.add_argument("--prompt-tokens", nargs="*", default=[], help="TASK=MEAN, then not fitted")
    parser.add_argument("--output", type=Path, default=Path("conf/engine/profile"))
    parser.add_argument("--figures", type=Path, help="folder for figures of the kernels' errors")
    return parser.parse_args()


def joules_or_fit(text: str) -> float | None:
    """Read joules; None for `fit`."""
    return None if text == "fit" else float(text)


def main() -> int:
    """Fit, write and report."""
    options = arguments()
    try:
        fit(options)
    except (ConfigError, RunError, OSError, KeyError, ValueError) as error:
        known = isinstance(error, ConfigError | RunError)
        print(str(error) if known else in_one_line(error), file=sys.stderr)
        return 2
    return 0


@dataclass(frozen=True)
class Asked:
    """One model of the command line, with what its fit starts from."""

    name: str
    rows: list[SteadyState]
    steps: pd.DataFrame
    kv_blocks: int
    kv_token_j: float | None


def read_models(options: argparse.Namespace) -> list[Asked]:
    """Return the models in their order; raises `ConfigError` and `RunError`."""
    count = len(options.model)
    for key in ("name", "steps", "kv_blocks", "gpus", "kv_token_j"):
        given = getattr(options, key)
        times = f"must be given {count} times, once for every --model"
        require(len(given) in {count} | ({0} if key in OPTIONAL else set()), key, given, times)
    return [
        Asked(
            name=options.name[number],
            rows=rows_of(options.steady, model, options.gpus[number] if options.gpus else None),
            steps=pd.read_csv(options.steps[number], comment="#"),
            kv_blocks=options.kv_blocks[number],
            kv_token_j=options.kv_token_j[number] if options.kv_token_j else None,
        )
        for number, model in enumerate(options.model)
    ]


def fit(options: argparse.Namespace) -> None:
    """Fit all models and write their profiles."""
    models = read_models(options)
    kernels = [fit_kernels(model.steps) for model in models]
    unfitted = [
        unfitted_profile(options, model, time)
        for model, (time, _) in zip(models, kernels, strict=True)
    ]
    tasks = {row.task for model in models for row in model.rows}
    given = dict(read_mean(text) for text in options.prompt_tokens)
    assumed = {task: ASSUMED_PROMPTS.get(task, OTHER_PROMPTS) for task in tasks} | given
    serving = fit_serving(
        [
            Served(profile, tuple(halves(model.rows)[0]))
            for profile, model in zip(unfitted, models, strict=True)
        ],
        Lengths(assumed, ASSUMED_VARIATION),
        set(options.fit_prompts) - set(given),
    )
    for number, model in enumerate(models):
        errors = kernels[number][1]
        limits_w = {name: getattr(options, name) for name in ("card_limit_w", "card_plateau_w")}
        profile, report = with_energy(serving.profiles[number], model, serving.lengths, limits_w)
        report.insert(
            0,
            f"kernels: {len(errors)} steps, relative error median {np.median(abs(errors)):.1%}, "
            f"largest {abs(errors).max():.1%}",
        )
        path = options.output / f"{model.name}.yaml"
        path.write_text(to_yaml(profile, report))
        print("\n".join(report))
        print(f"wrote {path}")
        if options.figures is not None:
            style.use_style()
            figure = kernel_fit.draw(model.steps, errors, profile.model)
            style.save(figure, options.figures, f"kernels_{model.name}")


def read_mean(text: str) -> tuple[str, float]:
    """Read TASK=MEAN; raises `ConfigError`."""
    task, _, mean = text.rpartition("=")
    numeric = mean.replace(".", "", 1).isdigit()
    require(bool(task) and numeric, "prompt_tokens", text, "must be TASK=MEAN, the mean in tokens")
    return task, float(mean)


def rows_of(path: Path, model: str, gpus: int | None) -> list[SteadyState]:
    """Return a model's rows, all on one number of cards; raises `RunError`."""
    rows = read_steady_states(path, model, gpus)
    numbers = sorted({row.gpus for row in rows})
    if len(numbers) > 1:
        known = ", ".join(map(str, numbers))
        raise RunError(f"{path} has {model} on {known} cards: give one of them as --gpus")
    return rows


def unfitted_profile(options: argparse.Namespace, model: Asked, kernels: StepTime) -> Profile:
    """Return the profile with the kernels' times, before serving and energy are fitted."""
    gpus = model.rows[0].gpus
    idle_w = gpus * options.idle_w
    return Profile(
        model=model.rows[0].model,
        devices=f"{gpus} x {options.device}",
        source=f"kernels: {options.steps_source}; serving and energy: {options.steady_source}",
        kv_blocks=model.kv_blocks,
        front_end=FrontEnd(options.front_end_ms, options.front_end_variation),
        time=kernels,
        energy=StepEnergy(idle_w, idle_w + 1, 0, 0, 0, 0),
        fitted=FittedRange(
            sequences=max(row.max_num_seqs for row in model.rows),
            kv_tokens=model.kv_blocks * 16,
            prefill_tokens=int(model.steps["prefill_tokens"].max()),
            tokenizer=options.tokenizer,
            rows_digest=hashlib.sha256(options.steady.read_bytes()).hexdigest(),
        ),
    )


def with_energy(
    profile: Profile, model: Asked, lengths: Lengths, limits_w: Mapping[str, float]
) -> tuple[Profile, list[str]]:
    """Fit the energy; returns the whole profile, and the errors of all rows in words."""
    runs = {row: simulate(profile, profile.kv_blocks, row, lengths) for row in model.rows}
    fitted, _ = halves(model.rows)
    energy = fit_energy(
        profile.time,
        fitted,
        [runs[row] for row in fitted],
        profile.energy.idle_w,
        model.kv_token_j,
        **limits_w,
    )
    prompts = {row.task: float(f"{lengths.prompt_tokens[row.task]:.4g}") for row in model.rows}
    fitted_range = replace(
        profile.fitted,
        prompt_tokens=prompts,
        prompt_variation=float(f"{lengths.prompt_variation:.4g}"),
    )
    report = ["task, batch limit, role: errors of ITL median, p90, p99, tokens/s, watts, J/token"]
    for row in model.rows:
        run, power_w = runs[row], watts(energy, runs[row])
        joules_per_token = power_w / run.output_tokens_per_s
        errors = (
            error(run.itl_median_ms, row.itl_median_ms),
            error(run.itl_p90_ms, row.itl_p90_ms),
            error(run.itl_p99_ms, row.itl_p99_ms),
            error(run.output_tokens_per_s, row.output_tokens_per_s),
            error(power_w, row.watts),
            error(joules_per_token, row.joules_per_token),
        )
        role = "fitted" if row in fitted else "judged"
        report.append(f"{row.task}, {row.max_num_seqs}, {role}: {', '.join(errors)}")
    return replace(profile, energy=energy, fitted=fitted_range), report


def error(simulated: float, measured: float | None) -> str:
    """Return the relative error in words."""
    return "n/a" if measured is None else f"{simulated / measured - 1:+.1%}"


if __name__ == "__main__":
    sys.exit(main())
