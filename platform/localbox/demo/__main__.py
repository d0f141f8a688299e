"""`python -m localbox.demo`, which is `make demo`."""

import os
import sys

from localbox.demo.full import run_full
from localbox.demo.request import demo_request_from
from localbox.demo.run import run_endless, run_once
from localbox.errors import BoxError
from localbox.settings import settings_from


def main() -> int:
    """Entry point of `make demo`."""
    try:
        request = demo_request_from(os.environ)
        if not request.once:
            return run_endless(settings_from())
        return run_full(request) if request.full else run_once(request)
    except (BoxError, RuntimeError) as exc:
        print(f"penstock: {exc}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
