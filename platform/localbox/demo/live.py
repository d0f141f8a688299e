"""`python -m localbox.demo.live`: waits until the demo's pipe is live, so that its first events find its lanes."""

import math

from localbox.demo import ledger
from localbox.settings import settings_from
from localbox.state import last_json_line


def main() -> None:
    """Wait until a revision of the demo's pipe is live."""
    pipe = last_json_line(settings_from().logs / "demo-pipe.log")["pipe"]
    ledger.start_django()
    ledger.wait_live(pipe, limit_s=math.inf)


if __name__ == "__main__":
    main()
