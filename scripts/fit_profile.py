"""Fit a performance profile of the simulated engine, and write it as YAML.

    python scripts/fit_profile.py --model Llama-3.1-8B --name llama_8b_h100 --steps steps.csv \\
        --kv-blocks 28000 --kv-token-j 3.4e-5

* `--steps`: step times of the model's kernels (`scripts/kernel_step_times.py` makes them), or
  measured ones (`scripts/calibrate_gpu.py`);
* `--steady`: measured steady states in ML.ENERGY's form; the ones in the package by default.

Kernels are fitted on the steps; what serving adds, and energy, on every other steady state. The
rest are only judged. Prompt lengths of the steady states are unknown: the mean is fitted with the
overheads for the tasks in `--fit-prompts`, and assumed for the others.
"""

import argparse
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.figures import kernel_fit, style
from bellman.engines.simulated.fitting import fit_energy, fit_kernels, fit_serving, watts
from bellman.engines.simulated.profile import FittedRange, Profile
from bellman.engines.simulated.steady_states import (
    MEASURED,
    Lengths,
    halves,
    read_steady_states,
    simulate,
)
from bellman.engines.simulated.step_energy import StepEnergy

ASSUMED_PROMPTS = {"lm-arena-chat": 350.0, "gpqa": 250.0}
"""Tokens; the start of the fit, or what is assumed."""


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", required=True, help="part of the model's name in --steady")
    parser.add_argument("--name", required=True, help="the profile's file name")
    parser.add_argument("--steps", type=Path, required=True)
    parser.add_argument("--steps-source", default="aiconfigurator-core 0.12.0, vLLM 0.24")
    parser.add_argument("--steady", type=Path, default=MEASURED)
    parser.add_argument("--steady-source", default="ML.ENERGY leaderboard v3, vLLM 0.11.1")
    parser.add_argument("--device", default="H100 SXM 80 GB")
    parser.add_argument("--kv-blocks", type=int, required=True)
    parser.add_argument("--idle-w", type=float, default=75.0, help="watts of one device")
    parser.add_argument("--kv-token-j", type=float, help="given where the rows cannot tell it")
    parser.add_argument("--fit-prompts", nargs="*", default=["lm-arena-chat"])
    parser.add_argument("--output", type=Path, default=Path("conf/engine/profile"))
    parser.add_argument("--figures", type=Path, help="folder for a figure of the kernels' errors")
    return parser.parse_args()


def main() -> None:
    """Fit, write and report."""
    options = arguments()
    steps = pd.read_csv(options.steps, comment="#")
    rows = read_steady_states(options.steady, options.model)
    fitted, _ = halves(rows)
    gpus = rows[0].gpus
    idle_w = gpus * options.idle_w
    kernels, kernel_errors = fit_kernels(steps)
    profile = Profile(
        model=rows[0].model,
        devices=f"{gpus} x {options.device}",
        source=f"kernels: {options.steps_source}; serving and energy: {options.steady_source}",
        kv_blocks=options.kv_blocks,
        time=kernels,
        energy=StepEnergy(idle_w, idle_w + 1, 0, 0, 0, 0),
        fitted=FittedRange(
            sequences=max(row.max_num_seqs for row in rows),
            kv_tokens=options.kv_blocks * 16,
            prefill_tokens=int(steps["prefill_tokens"].max()),
        ),
    )
    prompts = {row.task: ASSUMED_PROMPTS[row.task] for row in rows}
    serving = fit_serving(profile, fitted, Lengths(prompts), set(options.fit_prompts))
    profile = replace(profile, time=serving.time)
    runs = {row: simulate(profile, profile.kv_blocks, row, serving.lengths) for row in rows}
    energy = fit_energy(
        serving.time, fitted, [runs[row] for row in fitted], idle_w, options.kv_token_j
    )
    profile = replace(profile, energy=energy)
    report = [
        f"kernels: {len(steps)} steps, relative error median {np.median(abs(kernel_errors)):.1%}, "
        f"largest {abs(kernel_errors).max():.1%}",
        f"mean prompt tokens: {describe(serving.lengths)}",
        "task, batch limit, role: errors of ITL, tokens/s, watts, J/token",
    ]
    for row in rows:
        run = runs[row]
        power_w = watts(energy, run)
        errors = (
            run.itl_median_ms / row.itl_median_ms,
            run.output_tokens_per_s / row.output_tokens_per_s,
            power_w / row.watts,
            power_w / run.output_tokens_per_s / row.joules_per_token,
        )
        role = "fitted" if row in fitted else "judged"
        texts = ", ".join(f"{error - 1:+.1%}" for error in errors)
        report.append(f"{row.task}, {row.max_num_seqs}, {role}: {texts}")
    path = options.output / f"{options.name}.yaml"
    path.write_text(to_yaml(profile, report))
    print("\n".join(report))
    print(f"wrote {path}")
    if options.figures is not None:
        style.use_style()
        figure = kernel_fit.draw(steps, kernel_errors, profile.model)
        style.save(figure, options.figures, f"kernels_{options.name}")


def describe(lengths: Lengths) -> str:
    """Return the prompt lengths in words."""
    return ", ".join(f"{task} {tokens:.0f}" for task, tokens in lengths.prompt_tokens.items())


def to_yaml(profile: Profile, report: list[str]) -> str:
    """Return the profile as a YAML file that says where each group of coefficients is from."""
    kernels, serving = profile.source.removeprefix("kernels: ").split("; serving and energy: ")
    origins = {
        "floor_ms": f"kernels: {kernels}",
        "overhead_factor": f"serving over kernels: {serving}",
        "idle_w": "assumed: idle H100s draw 70 to 80 W each, and more once they hold a context",
        "power_limit_w": f"the plateau of the measured power: {serving}",
        "step_j": f"fitted to the measured power: {serving}",
        "prefill_token_j": "assumed: a prefill that fills the GPU draws the power limit",
        "sequence_j": f"fitted to the measured power: {serving}",
        "kv_token_j": "by bytes as in qwen3_8b_h100, where two tasks tell it from sequence_j",
    }
    lines = [
        f"# {profile.model} on {profile.devices}. Written by scripts/fit_profile.py.",
        "_target_: bellman.engines.simulated.profile.Profile",
        f"model: {profile.model}",
        f"devices: {profile.devices}",
        f"kv_blocks: {profile.kv_blocks}",
        f'source: "{profile.source}"',
    ]
    for group, target in (
        ("time", "step_time.StepTime"),
        ("energy", "step_energy.StepEnergy"),
        ("fitted", "profile.FittedRange"),
    ):
        lines += [f"{group}:", f"  _target_: bellman.engines.simulated.{target}"]
        for name, value in asdict(getattr(profile, group)).items():
            if name in origins:
                lines.append(f"  # {origins[name]}")
            lines.append(f"  {name}: {number(value)}")
    return "\n".join([*lines, "# Errors of this fit:", *(f"#   {line}" for line in report)]) + "\n"


def number(value: float) -> str:
    """Return four digits of a coefficient, as YAML reads a float."""
    return str(value) if isinstance(value, int) else repr(float(f"{value:.4g}"))


if __name__ == "__main__":
    main()
