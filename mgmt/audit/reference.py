"""Reference page of the audit log's actions: `python -m mgmt.audit.reference > docs/reference/audit-actions.md`."""

import sys
from typing import Final

from mgmt.audit.actions import ACTIONS, sentence

_HEAD: Final = """# Actions of the audit log

Generated from `mgmt/audit/actions.py` by `make reference`. The [guide](../audit-log.md) says how to read the audit log.

An entry contains the listed fields, before and after the change, if they differ. Of any other field it says only
`changed`. No entry contains a secret, a key, a credential, or the body or key of a message.

| action | sentence | fields |
|---|---|---|
"""


def page() -> str:
    """Return the page as Markdown."""
    return _HEAD + "".join(map(_row, ACTIONS))


def _row(name: str) -> str:
    fields = ", ".join(f"`{one}`" for one in sorted(ACTIONS[name].fields))
    return f"| `{name}` | {sentence(name, actor='ann', target='…')} | {fields} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
