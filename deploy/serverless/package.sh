#!/usr/bin/env bash
# Make the Lambda's zip: the handler, bellman, and what the two import. On Linux, for the machine type
# and the Python that the function has (x86_64, 3.11).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m pip install -q --target "$folder" -c "$root/constraints.txt" hydra-core omegaconf pydantic
cp "$here/handler.py" "$folder"
(cd "$root" && find bellman -name '*.py' -exec cp --parents {} "$folder" \;)
find "$folder" -name __pycache__ -prune -exec rm -r {} +
rm -f "$here/law.zip"
(cd "$folder" && python3.11 -m zipfile -c "$here/law.zip" ./*)
ls -l "$here/law.zip"
