"""Django code in a box, run in a process of its own, and queries of its Postgres."""

import json
import sys
from typing import Any, Final

import psycopg

from localbox.testing import Box

DELIVERED: Final = """
import json
from dataplane.ledger.bins import Bin
from localbox.demo.ledger import read_accounts
from mgmt.models import Pipe
found = read_accounts(Pipe.objects.get(name={name!r}).id)
print(json.dumps({{"count": sum(account.count(Bin.DELIVERED) for account in found.values())}}))
"""


def shell_json(box: Box, code: str) -> dict[str, Any]:
    """Run Django code in the box and return the JSON object that it printed last."""
    done = box.run(sys.executable, "manage.py", "shell", "-v", "0", "-c", code)
    assert done.returncode == 0, done.stderr
    words: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return words


def delivered_count(box: Box, pipe: str) -> int:
    """Return how many messages of the pipe of this name the box's ledger counts as delivered."""
    return int(shell_json(box, DELIVERED.format(name=pipe))["count"])


def query_rows(box: Box, query: str, *values: object) -> list[Any]:
    """Return the rows of a query of the box's Postgres."""
    with psycopg.connect(box.env["DATABASE_URL"]) as connection:
        return connection.execute(query.encode(), values).fetchall()
