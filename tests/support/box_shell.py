"""Django code in a box, run in a process of its own, and queries of its Postgres."""

import json
import sys
from typing import Any

import psycopg

from localbox.testing import Box


def shell_json(box: Box, code: str) -> dict[str, Any]:
    """Run Django code in the box and return the JSON object that it printed last."""
    done = box.run(sys.executable, "manage.py", "shell", "-v", "0", "-c", code)
    assert done.returncode == 0, done.stderr
    words: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return words


def query_rows(box: Box, query: str, *values: object) -> list[Any]:
    """Return the rows of a query of the box's Postgres."""
    with psycopg.connect(box.env["DATABASE_URL"]) as connection:
        return connection.execute(query.encode(), values).fetchall()
