"""Train from a YAML config: `python scripts/train.py configs/quickstart.yaml`, as `netanomaly train`."""

import sys

from netanomaly.cli import main

sys.exit(main(["train", *sys.argv[1:]]))
