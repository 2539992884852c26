"""A fitted profile as a YAML file that says where each group of coefficients is from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bellman.engines.simulated.fit_energy import component_seconds
from bellman.engines.simulated.profile import Profile

GROUPS = (
    ("front_end", "front_end.FrontEnd"),
    ("time", "step_time.StepTime"),
    ("stalls", "stalls.Stalls"),
    ("energy", "step_energy.StepEnergy"),
    ("fitted", "profile.FittedRange"),
)


def to_yaml(profile: Profile, report: Sequence[str]) -> str:
    """Return the file; `report` says how well the fit does, a line each."""
    kernels, serving = profile.source.removeprefix("kernels: ").split("; serving and energy: ")
    origins = {
        "mean_ms": "assumed: time to first token of measured servers over that of the simulation",
        "floor_ms": f"kernels: {kernels}",
        "overhead_factor": f"serving over kernels: {serving}",
        "share": f"of the steps come late: {serving}",
        "idle_w": "assumed: idle H100s draw 70 to 80 W each, and more once they hold a context",
        "power_limit_w": "the plateau of the measured power of full cards, 690 W each",
        "step_j": f"fitted to the measured power: {serving}",
        "prefill_token_j": "assumed: a prefill that fills the GPU draws that plateau",
        "sequence_j": f"fitted to the measured power: {serving}",
        "kv_token_j": "fitted where two tasks tell it from sequence_j, else by bytes as there",
        "tokenizer": "prompts of the steady states are not published: fitted or assumed",
    }
    watts = component_watts(profile)
    lines = [
        f"# {profile.model} on {profile.devices}. Written by scripts/fit_profile.py.",
        "_target_: bellman.engines.simulated.profile.Profile",
        f"model: {json.dumps(profile.model)}",
        f"devices: {json.dumps(profile.devices)}",
        f"kv_blocks: {profile.kv_blocks}",
        f"source: {json.dumps(profile.source)}",
    ]
    for group, target in GROUPS:
        lines += [f"{group}:", f"  _target_: bellman.engines.simulated.{target}"]
        for name, value in asdict(getattr(profile, group)).items():
            if name in origins:
                lines.append(f"  # {origins[name]}")
            drawn = f"  # {watts[name]:.0f} W while it runs, with idle_w" if name in watts else ""
            lines.append(f"  {name}: {plain(value)}{drawn}")
    return "\n".join([*lines, "# Errors of this fit:", *(f"#   {line}" for line in report)]) + "\n"


def component_watts(profile: Profile) -> Mapping[str, float]:
    """Return what each component draws in the time that it takes, with what idling draws."""
    seconds = component_seconds(profile.time)
    energy = profile.energy
    return {
        name: energy.idle_w + getattr(energy, name) / of_one_s
        for name, of_one_s in seconds.items()
        if of_one_s > 0
    }


def plain(value: Any) -> str:
    """Return a value as YAML; floats with four digits, as YAML reads a float."""
    if isinstance(value, float):
        return repr(float(f"{value:.4g}"))
    return json.dumps(value)
