"""Label the rows of files: `python scripts/predict.py runs/quickstart links.csv`, as `netanomaly predict`."""

import sys

from netanomaly.cli import main

sys.exit(main(["predict", *sys.argv[1:]]))
