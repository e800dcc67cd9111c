"""A script's `main` as a command: what goes wrong is one line, and Ctrl-C ends it with 130."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from netanomaly.errors import NetanomalyError


def run_command(main: Callable[[], None]) -> None:
    """Call `main`; exits with 2 after a file that cannot be used or an error of the package, with 130 after Ctrl-C."""
    name = Path(sys.argv[0]).name
    try:
        main()
    except KeyboardInterrupt:
        print(f"{name}: interrupted; what was finished is kept", file=sys.stderr)
        raise SystemExit(130) from None
    except (NetanomalyError, OSError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        raise SystemExit(2) from None
