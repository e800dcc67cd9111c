# Sourced by the other scripts: makes .venv if there is none and installs the project as pinned in constraints.txt.
# Set `extras` first: empty, report, or dev. (POSIX gives a sourced file no arguments of its own.)
set -eu
python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "netanomaly needs Python 3.11 or newer; set PYTHON=/path/to/python3" >&2
    exit 2
fi
[ -x .venv/bin/python ] || "$python" -m venv .venv
# Install again only when what is to be installed has changed; what dev needs includes what the program needs.
wanted=$(cat pyproject.toml constraints.txt | cksum)
installed() { [ "$(cat ".venv/installed-$1" 2>/dev/null || true)" = "$wanted" ]; }
if ! installed "${extras:-run}" && ! installed dev; then
    echo "installing into .venv ..." >&2
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".${extras:+[$extras]}"
    echo "$wanted" > ".venv/installed-${extras:-run}"
fi
