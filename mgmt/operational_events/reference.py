"""Reference page of operational events: `python -m mgmt.operational_events.reference`."""

import sys
from typing import Final

from mgmt.operational_events.types import OPERATIONAL_TYPES

_HEAD: Final = """# Types of operational events

Generated from `mgmt/operational_events/types.py` by `make reference`.
The [guide](../operational-events.md) says how to receive these events.

`data` contains those of the listed fields that apply.

| type | when | fields of `data` |
|---|---|---|
"""


def page() -> str:
    """Return the page as Markdown."""
    return _HEAD + "".join(map(_row, OPERATIONAL_TYPES))


def _row(name: str) -> str:
    given = OPERATIONAL_TYPES[name]
    return f"| `{name}` | {given.words} | {', '.join(f'`{one}`' for one in given.fields)} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
