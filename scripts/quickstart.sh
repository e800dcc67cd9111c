#!/bin/sh
# Train on the bundled measurements and report on two links the model has never seen.
set -eu
cd "$(dirname "$0")/.."
. scripts/environment.sh
.venv/bin/netanomaly train configs/quickstart.yaml --overwrite "$@"
