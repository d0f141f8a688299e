"""`python -m localbox.demo`, which is `make demo`."""

import os
import sys

from localbox.demo.full import run_full
from localbox.demo.request import wish_from
from localbox.demo.run import run_endless, run_once
from localbox.errors import BoxError
from localbox.settings import settings_from


def main() -> int:
    """Entry point of `make demo`."""
    try:
        wish = wish_from(os.environ)
        if not wish.once:
            return run_endless(settings_from())
        return run_full(wish) if wish.full else run_once(wish)
    except (BoxError, RuntimeError) as exc:
        print(f"penstock: {exc}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
