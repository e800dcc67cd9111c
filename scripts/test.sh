#!/bin/sh
# Lint, type-check and test, one process per core. With --slow, also the tests that take long; other arguments go to pytest.
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
# A file stays in one process, which trains what its tests share once; tests/conftest.py puts the longest first. Threads of
# many processes would be in each other's way.
OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} .venv/bin/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "$marks" "$@"
