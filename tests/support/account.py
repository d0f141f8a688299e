"""`python -m tests.support.account <pipe>`: compares a box's ledger with the logs of sender and receiver.

A separate program, because Django has one database per process and the tests use their own.
"""

import os
import sys
from pathlib import Path

from localbox.demo import ledger
from localbox.demo.compare import differences, read_books, result_of
from localbox.demo.logs import read_received, read_sent
from localbox.demo.run import DESTINATION


def main(pipe: str) -> int:
    """Print the differences, then the result; return 0 if nothing differs and nothing is lost."""
    folder = Path(os.environ["PENSTOCK_VAR"]) / "demo"
    ledger.start_django()
    expected = len(read_books(read_sent(folder / "sent.log"), []).acked)
    accounts = ledger.wait_settled(pipe, expected=expected, limit_s=120)
    books = read_books(read_sent(folder / "sent.log"), read_received(folder / "received.log"))
    wrong = differences(books, accounts, destination=DESTINATION)
    result = result_of(books, accounts)
    print(*wrong, result, sep="\n")  # noqa: T201 (read by the test)
    return 1 if wrong or result.lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
