#!/bin/sh
# Build the source distribution and, from that alone, the wheel; look into it; install it in a new environment as pinned
# in constraints.txt; label rows with the starter bundle outside the checkout. Usage: sh scripts/check_wheel.sh [DIR];
# default: a temporary directory. Takes minutes, and gigabytes where PyTorch comes with CUDA.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}
if [ $# -gt 0 ]; then
    mkdir -p "$1"
    place=$(cd "$1" && pwd)
else
    place=$(mktemp -d)
    trap 'rm -rf "$place"' EXIT
fi
install() { "$place/$1/bin/python" -m pip install --quiet --disable-pip-version-check -c "$root/constraints.txt" "$2"; }

echo "building ..." >&2
"$python" -m venv "$place/builder"
install builder hatchling
rm -rf "$place/dist" "$place/source"
mkdir "$place/source"
(cd "$root" && "$place/builder/bin/python" -m hatchling build -t sdist -d "$place/dist")
tar -xzf "$place"/dist/*.tar.gz -C "$place/source" --strip-components 1
(cd "$place/source" && "$place/builder/bin/python" -m hatchling build -t wheel -d "$place/dist")

"$python" - "$root" "$place"/dist/*.whl <<'PYTHON'
import subprocess
import sys
import zipfile
from pathlib import Path

root, wheel = map(Path, sys.argv[1:])
names = {name for name in zipfile.ZipFile(wheel).namelist() if not name.endswith("/")}
package = {name for name in names if name.startswith("netanomaly/")}
tracked = subprocess.run(["git", "ls-files", "src/netanomaly"], cwd=root, capture_output=True, text=True, check=True)
if package != {name.removeprefix("src/") for name in tracked.stdout.splitlines()}:
    sys.exit(f"{wheel.name}: its files are not those of src/netanomaly that git knows")
wanted = {"py.typed", "report/templates/report.css", "starter_bundle/model.safetensors", "starter_bundle/manifest.json"}
if missing := {f"netanomaly/{name}" for name in wanted} - package:
    sys.exit(f"{wheel.name}: lacks {', '.join(sorted(missing))}")
others = {name.split("/", 1)[1] for name in names - package}
if others != {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}:
    sys.exit(f"{wheel.name}: holds {', '.join(sorted(others))} beside the package")
print(f"{wheel.name}: {len(package)} files, {wheel.stat().st_size} bytes")
PYTHON

echo "installing ..." >&2
"$python" -m venv --clear "$place/new"
install new "$(echo "$place"/dist/*.whl)"
"$place/new/bin/python" -m pip check --disable-pip-version-check
cp "$root/data/testbed/data.csv.gz" "$place/rows.csv.gz"
cd "$place"
unset PYTHONPATH
new/bin/netanomaly --version
new/bin/netanomaly inspect starter >/dev/null
new/bin/netanomaly predict starter rows.csv.gz --out labelled.csv --quiet
lines=$(wc -l < labelled.csv)
[ "$lines" -gt 1000 ] || { echo "labelled.csv has $lines lines only" >&2; exit 1; }
echo "the wheel, installed alone, labelled $((lines - 1)) rows"
