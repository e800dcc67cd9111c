#!/bin/sh
# Train on the bundled measurements and report on two links the model has never seen.
set -eu
cd "$(dirname "$0")/.."
extras=report
. scripts/environment.sh
.venv/bin/netanomaly train configs/quickstart.yaml --overwrite "$@"
