"""Write the step times of a model from the measured kernels of `aiconfigurator-core`.

    python -m pip install aiconfigurator-core==0.12.0     # in any environment; Apache-2.0
    python scripts/kernel_step_times.py Qwen/Qwen3-8B --system h100_sxm --output steps.csv
    python scripts/kernel_step_times.py ./qwen3-14b --output steps.csv     # holds config.json

The rows are what `scripts/fit_profile.py --steps` takes: decode steps, prefills, and steps of both,
239 of them. Models that the package does not bundle it looks for on the Hugging Face hub; without a
network, put the model's config.json into a folder and name the folder.
"""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

DECODE_SEQUENCES = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512)
CONTEXTS = (128, 256, 512, 1024, 2048, 3072, 4096, 6144, 8192)
PREFILLS = (16, 32, 64, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384)
CHUNKS = (256, 512, 1024, 2048, 4096, 8192)
MIXED_SEQUENCES = (4, 16, 64, 128, 256)
MIXED_CONTEXTS = (512, 1024, 2048, 4096, 8192)
MOST_KV_TOKENS = 400_000
COLUMNS = ("kind", "prefill_tokens", "prefix", "decode_seqs", "kv_tokens", "ctx_len", "latency_ms")


def main() -> None:
    """Write the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("model", help="a hub name, or a folder with the model's config.json")
    parser.add_argument("--system", default="h100_sxm")
    parser.add_argument("--gpus", type=int, default=1, help="tensor-parallel size")
    parser.add_argument("--vllm", default="0.24.0", help="version whose kernels were measured")
    parser.add_argument("--output", required=True)
    arguments = parser.parse_args()
    try:
        from aiconfigurator_core.sdk import EngineHandle  # noqa: PLC0415
    except ImportError:
        parser.exit(2, "aiconfigurator-core: pip install aiconfigurator-core==0.12.0 (not found)\n")
    try:
        engine = EngineHandle.compile(
            arguments.model,
            arguments.system,
            "vllm",
            backend_version=arguments.vllm,
            tp_size=arguments.gpus,
        )
        found = list(rows(engine))
    except Exception as failure:  # the package has no common class for what it refuses
        parser.exit(2, f"model={arguments.model}: {in_words(failure)}\n")
    with Path(arguments.output).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(found)


def in_words(failure: Exception) -> str:
    """Return what is wrong and what helps, in one line."""
    text = " ".join(str(failure).split()) or type(failure).__name__
    if "HuggingFace" in text:
        text += "; give a folder that holds the model's config.json instead of its name"
    return text


def rows(engine: object) -> Iterator[tuple[str, int, int, int, int, int, float]]:
    """Return the rows; the model's latencies are in milliseconds."""
    decode = engine.decode_step_latency  # type: ignore[attr-defined]
    prefill = engine.predict_prefill_latency  # type: ignore[attr-defined]
    mixed = engine.mixed_step_latency  # type: ignore[attr-defined]
    for sequences in DECODE_SEQUENCES:
        for context in CONTEXTS:
            if sequences * context <= MOST_KV_TOKENS:
                time_ms = decode(sequences, context, 2)
                yield "decode", 0, 0, sequences, sequences * context, context, time_ms
    for tokens in PREFILLS:
        yield "prefill", tokens, 0, 0, 0, tokens, prefill(1, tokens)
    for context in MIXED_CONTEXTS:
        for sequences in MIXED_SEQUENCES:
            for tokens in CHUNKS:
                if sequences * context <= MOST_KV_TOKENS:
                    time_ms = mixed(tokens, sequences, context, 2)
                    yield "mixed", tokens, 0, sequences, sequences * context, context, time_ms


if __name__ == "__main__":
    main()
