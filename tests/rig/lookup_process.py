"""A process that holds look-up tables as a process lane does: `python -m tests.rig.lookup_process KAFKA FOLDER`."""

import logging
import sys
import time
from pathlib import Path

from dataplane.runtime.lookup_keeper import LookupKeeper
from dataplane.tables.lookup_store import LookupStore


def main() -> None:
    """Until it is killed."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    kafka, folder = sys.argv[1], Path(sys.argv[2])
    LookupKeeper(kafka, LookupStore(folder), folder).start()
    while True:
        time.sleep(1)


if __name__ == "__main__":
    main()
