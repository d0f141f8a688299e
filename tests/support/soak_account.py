"""`python -m tests.support.soak_account <pipe>`: compares a box's ledger with the logs of a long run, as bitmaps.

A separate program, because Django has one database per process and the tests use their own. Bodies are not compared:
tests.support.account does that, in more memory.
"""

import os
import sys
from pathlib import Path

from pyroaring import BitMap64

from dataplane.ledger.bins import Bin
from loadgen.events import ACCEPTED
from localbox.demo import ledger
from localbox.demo.logs import read_received, read_sent
from localbox.demo.run import DESTINATION


def main(pipe: str) -> int:
    """Print the differences, then the number of ACKed events; return 0 if nothing differs and nothing is lost."""
    folder = Path(os.environ["PENSTOCK_VAR"]) / "demo"
    acked = BitMap64(
        line.position
        for line in read_sent(folder / "sent.log")
        if line.status == ACCEPTED and line.position is not None
    )
    received = BitMap64(line.position for line in read_received(folder / "received.log"))
    ledger.start_django()
    known, delivered, open_units = BitMap64(), BitMap64(), 0
    for account in ledger.wait_settled(pipe, expected=len(acked), limit_s=240).values():
        known |= account.acked.positions()
        bins = account.destinations.get(DESTINATION, {})
        delivered |= bins[Bin.DELIVERED].positions() if bins else BitMap64()
        open_units += sum(account.count(name) for name in (Bin.LOST, Bin.QUEUED, Bin.RETRYING, Bin.HELD))
    wrong = {
        "ACKed to the sender, but not in the ledger": len(acked - known),
        "received, but not delivered in the ledger": len(received - delivered),
        "delivered in the ledger, but not received": len(delivered - received),
        "ACKed, but not received": len(acked - received),
        "lost, queued, retrying or held in the ledger": open_units,
    }
    print(*(f"{text}: {count}" for text, count in wrong.items() if count), f"{len(acked)} ACKed", sep="\n")  # noqa: T201 (read by the test)
    return int(any(wrong.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
