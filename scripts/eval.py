"""Score a trained bundle: `python scripts/eval.py runs/quickstart`, as `netanomaly eval`."""

import sys

from netanomaly.cli import main

sys.exit(main(["eval", *sys.argv[1:]]))
