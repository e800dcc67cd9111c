#!/bin/sh
# Lint, type-check and test. With --slow, also the tests that take long; other arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."
extras=dev
. scripts/environment.sh
marks="not slow"
if [ "${1:-}" = --slow ]; then
    marks=""
    shift
fi
.venv/bin/ruff format --check .
.venv/bin/ruff check .
.venv/bin/mypy
OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} .venv/bin/python -m pytest -m "$marks" "$@"
