"""Check of names and labels that people enter."""

from mgmt.errors import InvalidValue

MAX_NAME = 80


def checked_name(field: str, name: str) -> str:
    """Return the name without surrounding white space. Raises InvalidValue if empty, too long or not printable."""
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME:
        raise InvalidValue(field, f"needs 1 to {MAX_NAME} characters, got {len(name)}")
    if not name.isprintable():
        raise InvalidValue(field, "needs printable characters on one line")
    return name
