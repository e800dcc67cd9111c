#!/bin/sh
# What somebody on call may expect on links that training has not seen: alarms, delays and calibration, unknown classes,
# reasons and label audit, all on the bundled testbed. About an hour on two cores.
set -eu
cd "$(dirname "$0")/.."
extras=report
. scripts/environment.sh
out=${1:-runs/on_call}
mkdir -p "$out"
.venv/bin/python scripts/bench_alarms.py --work "$out/bundles" --out "$out/alarms.json"
.venv/bin/python scripts/bench_reasons.py --bundle "$out/bundles/0" --out "$out/reasons.json"
.venv/bin/python scripts/bench_unknown.py --work "$out/unknown" --out "$out/unknown.json"
.venv/bin/python scripts/bench_audit.py --set channels.levels=hidden --set threads=1 --out "$out/audit.json"
