"""Measure a decoder's step time and power on this machine's GPU, and write a profile.

    python scripts/calibrate_gpu.py --shape llama-3.1-8b --output outputs/calibration/my_gpu

PyTorch alone: no server and no weights. A decoder of the shape with random weights (bfloat16, plain
KV cache) takes steps over a grid of batch, context and prefill sizes, in a few minutes. It writes
`<output>.csv` (a row per kind of step), `<output>.json` (how it was measured, and what it leaves
out) and, where power could be read, `<output>.yaml`: a profile for engine/profile. Without a GPU
it runs on the CPU, for trying out.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from decoder import SHAPES, Decoder, Shape
from omegaconf import OmegaConf
from rich.console import Console
from rich.progress import track
from scipy.optimize import nnls

from bellman import provenance
from bellman.energy.nvml_driver import Driver, DriverError
from bellman.energy.visible_gpus import Ambiguous, Gpu, visible_gpus
from bellman.engines.simulated.fit_kernels import fit_kernels
from bellman.engines.simulated.front_end import FrontEnd
from bellman.engines.simulated.profile import FittedRange, Profile
from bellman.engines.simulated.step_energy import StepEnergy
from bellman.engines.simulated.step_time import StepTime
from bellman.records import write_json

BLOCK_TOKENS = 16
KV_SHARE = 0.85
"""Of the memory that the weights leave; the rest is for activations."""
LONGEST_CACHE_TOKENS = 448_000
LEAVES_OUT = [
    "the server: HTTP, tokenizer, scheduler, sampling, detokenizer (measured servers take 1.08 to "
    "1.11 times the kernels' time and more a sequence)",
    "paged attention: the KV cache is contiguous here",
    "fused kernels and quantization that a server may use: norms, rotary embedding and the gate "
    "run as PyTorch has them",
    "prefill of several prompts in one step, and contexts of different lengths in one batch",
    "several GPUs: no tensor parallelism",
    "what random weights do not show: power depends a little on the numbers that are multiplied",
]


@dataclass(frozen=True, slots=True)
class Step:
    """One kind of step of the grid."""

    kind: str
    prefill_tokens: int
    prefix: int
    decode_seqs: int
    ctx_len: int
    """Tokens of each decoding sequence; of the prompt in a step that only prefills."""

    @property
    def kv_tokens(self) -> int:
        """Context that decode attention reads."""
        return self.decode_seqs * self.ctx_len if self.decode_seqs else 0

    @property
    def cache_tokens(self) -> int:
        """Tokens of KV cache the step needs."""
        return max(self.kv_tokens, self.prefix + self.prefill_tokens)


def grid(limit_tokens: int, quick: bool) -> list[Step]:
    """Return the steps that fit in a cache of `limit_tokens` tokens."""
    batches = [1, 4] if quick else [1, 8, 32, 64, 128, 192, 256, 512]
    contexts = [16, 64] if quick else [128, 512, 1024, 2048, 4096]
    prefills = (
        [(32, 0), (32, 32)]
        if quick
        else [
            *((tokens, 0) for tokens in (128, 512, 1024, 2048, 4096, 8192)),
            *((2048, prefix) for prefix in (2048, 6144)),
        ]
    )
    mixed = [(16, 2)] if quick else [(p, n) for p in (512, 2048, 7936) for n in (16, 64, 256)]
    steps = [Step("decode", 0, 0, n, context) for n in batches for context in contexts]
    steps += [Step("prefill", p, prefix, 0, prefix + p) for p, prefix in prefills]
    steps += [Step("mixed", p, 0, n, contexts[1]) for p, n in mixed]
    return [step for step in steps if step.cache_tokens <= limit_tokens]


class PowerMeter:
    """Energy of the one GPU in use; why not where it cannot be read."""

    def __init__(self) -> None:
        self.reason: str | None = None
        try:
            self._driver = Driver()
            self._gpu: Gpu = visible_gpus(self._driver.gpus(), os.environ)[0]
            self._driver.energy_j(self._gpu)
        except (DriverError, Ambiguous) as error:
            self.reason = str(error)

    def energy_j(self) -> float | None:
        """Return the counter, or None."""
        return None if self.reason else self._driver.energy_j(self._gpu)


def measure(decoder: Decoder, step: Step, seconds: float, meter: PowerMeter) -> dict[str, object]:
    """Repeat a step for so long; return its row: mean latency, and power where it can be read."""
    run = repeatable(decoder, step)
    run()
    synchronize(decoder.device)
    started_j, started_s, count = meter.energy_j(), time.perf_counter(), 0
    while (elapsed_s := time.perf_counter() - started_s) < seconds or count < 3:
        run()
        count += 1
        synchronize(decoder.device)
    ended_j = meter.energy_j()
    power_w = None if started_j is None or ended_j is None else (ended_j - started_j) / elapsed_s
    return {
        "kind": step.kind,
        "prefill_tokens": step.prefill_tokens,
        "prefix": step.prefix,
        "decode_seqs": step.decode_seqs,
        "kv_tokens": step.kv_tokens,
        "ctx_len": step.prefix + step.prefill_tokens if step.prefill_tokens else step.ctx_len,
        "latency_ms": 1e3 * elapsed_s / count,
        "power_w": power_w,
    }


def repeatable(decoder: Decoder, step: Step) -> Callable[[], object]:
    """Return the step as one call; decoding on a GPU is a captured graph, as servers do it."""

    def run() -> object:
        return decoder.step(step.prefill_tokens, step.prefix, step.decode_seqs, step.ctx_len)

    if decoder.device.type != "cuda" or step.prefill_tokens:
        return run
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def synchronize(device: torch.device) -> None:
    """Wait for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def idle_watts(meter: PowerMeter, seconds: float) -> float | None:
    """Return the power with the weights loaded and nothing to do."""
    before = meter.energy_j()
    time.sleep(seconds)
    after = meter.energy_j()
    return None if before is None or after is None else (after - before) / seconds


def fit_energy(rows: pd.DataFrame, idle_w: float) -> StepEnergy:
    """Fit the joules of a step above idle, each coefficient at least 0 (relative least squares)."""
    joules = rows["latency_ms"].to_numpy(float) / 1e3 * (rows["power_w"].to_numpy(float) - idle_w)
    terms = rows[["prefill_tokens", "decode_seqs", "kv_tokens"]].to_numpy(float)
    design = np.column_stack((np.ones(len(rows)), terms))
    scale = np.maximum(joules, 1e-9)
    sizes = design.max(axis=0)  # numbers of like size for the solver
    coefficients = nnls(design / sizes / scale[:, None], np.ones(len(rows)))[0] / sizes
    step_j, prefill_token_j, sequence_j, kv_token_j = map(float, coefficients)
    limit_w = float(rows["power_w"].max())
    return StepEnergy(idle_w, limit_w, step_j, prefill_token_j, sequence_j, kv_token_j)


def profile_of(
    rows: pd.DataFrame, step_time: StepTime, energy: StepEnergy, decoder: Decoder, device: str
) -> Profile:
    """Return the profile that the simulated engine loads."""
    return Profile(
        model=decoder.shape.name,
        devices=f"1 x {device}",
        source="scripts/calibrate_gpu.py: random weights, PyTorch kernels, no server",
        kv_blocks=decoder.kv_tokens // BLOCK_TOKENS,
        front_end=FrontEnd(mean_ms=0.0, variation=0.0),  # there is no server
        time=step_time,
        energy=energy,
        fitted=FittedRange(
            sequences=int(rows["decode_seqs"].max()),
            kv_tokens=int(rows["kv_tokens"].max()),
            prefill_tokens=int(rows["prefill_tokens"].max()),
        ),
    )


def profile_node(variant: object) -> dict[str, object]:
    """Return a configuration dataclass as the YAML node that builds it."""
    kind = type(variant)
    node: dict[str, object] = {"_target_": f"{kind.__module__}.{kind.__qualname__}"}
    for field in fields(variant):  # type: ignore[arg-type]
        value = getattr(variant, field.name)
        node[field.name] = profile_node(value) if hasattr(value, "__dataclass_fields__") else value
    return node


def cache_tokens(shape: Shape, device: torch.device) -> int:
    """Return how many tokens of KV cache fit beside the weights."""
    if device.type != "cuda":
        return 4096
    free_bytes, _ = torch.cuda.mem_get_info()
    left = KV_SHARE * (free_bytes - 2 * shape.parameters)
    return max(0, min(LONGEST_CACHE_TOKENS, int(left / shape.kv_bytes_per_token)))


def read_shape(text: str) -> Shape:
    """Return a shape by name, or from a model's config.json."""
    if text in SHAPES:
        return SHAPES[text]
    config = json.loads(Path(text).read_text())
    heads = config["num_attention_heads"]
    own = {field.name: config[field.name] for field in fields(Shape) if field.name in config}
    defaults = {"head_dim": config["hidden_size"] // heads, "num_key_value_heads": heads}
    return Shape(**{**defaults, **own, "name": config.get("_name_or_path") or text})


def main() -> int:
    """Measure, fit and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--shape", default="llama-3.1-8b", help=f"{', '.join(SHAPES)}; config.json")
    parser.add_argument("--output", type=Path, required=True, help="path without ending")
    parser.add_argument("--seconds", type=float, default=2.0, help="a kind of step")
    parser.add_argument("--quick", action="store_true", help="a grid of a few small steps")
    options = parser.parse_args()
    try:
        shape = read_shape(options.shape)
    except (OSError, ValueError, KeyError) as error:
        print(f"error: --shape {options.shape}: no config.json of a decoder ({error!r})")
        return 2
    console = Console(stderr=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    limit_tokens = cache_tokens(shape, device)
    steps = grid(limit_tokens, options.quick)
    if not steps:
        print(f"error: {shape.name} and its cache do not fit in the memory of {name}")
        return 1
    meter = PowerMeter()
    started_s = time.perf_counter()
    with torch.inference_mode():
        decoder = Decoder(shape, max(step.cache_tokens for step in steps), device)
        idle_w = idle_watts(meter, options.seconds)
        rows = pd.DataFrame(
            measure(decoder, step, options.seconds, meter)
            for step in track(steps, f"{shape.name} on {name}", console=console)
        )
    options.output.parent.mkdir(parents=True, exist_ok=True)
    rows.to_csv(options.output.with_suffix(".csv"), index=False, float_format="%.6g")
    step_time, errors = fit_kernels(rows)
    write_json(
        provenance.collect(
            shape=asdict(shape),
            device=name,
            torch=torch.__version__,
            cuda=torch.version.cuda,
            seconds_per_step=options.seconds,
            took_s=round(time.perf_counter() - started_s, 1),
            idle_w=idle_w,
            power="NVML energy counter" if meter.reason is None else None,
            power_reason=meter.reason,
            step_time=asdict(step_time),
            median_error=float(np.median(abs(errors))),
            largest_error=float(abs(errors).max()),
            leaves_out=LEAVES_OUT,
        ),
        options.output.with_suffix(".json"),
    )
    print(f"step time: error median {np.median(abs(errors)):.1%}, largest {abs(errors).max():.1%}")
    if idle_w is None:
        print(f"no profile: power was not measured ({meter.reason})")
        return 0
    energy = fit_energy(rows, idle_w)
    profile = profile_of(rows, step_time, energy, decoder, name)
    OmegaConf.save(OmegaConf.create(profile_node(profile)), options.output.with_suffix(".yaml"))
    print(f"wrote {options.output}.yaml: put it into conf/engine/profile")
    return 0


if __name__ == "__main__":
    sys.exit(main())
