"""`python -m tests.bench.flood PORT KEY`: the flooding tenant, in a process of its own, until SIGTERM.

In the process of the receiver it would compete for the interpreter lock and so delay what is measured.
"""

import signal
import sys

from tests.support.neighbours import Flood


def main() -> None:
    """Flood until the process is stopped."""
    port, key = sys.argv[1:]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Flood(int(port), key):
            signal.pause()
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
