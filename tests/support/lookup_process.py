"""Look-up tables as in a process lane: `python -m tests.support.lookup_process KAFKA FOLDER`."""

import logging
import sys
import time
from pathlib import Path

from dataplane.runtime.lookup_replicator import LookupReplicator
from dataplane.tables.lookup_store import LookupStore


def main() -> None:
    """Run until killed."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    kafka, folder = sys.argv[1], Path(sys.argv[2])
    LookupReplicator(kafka, LookupStore(folder), folder).start()
    while True:
        time.sleep(1)


if __name__ == "__main__":
    main()
