"""`python -m netanomaly`"""

import sys

from netanomaly.cli import main

sys.exit(main())
