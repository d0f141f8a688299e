"""Names that people give to things."""

from mgmt.services.errors import InvalidValue

MAX_NAME = 80


def checked_name(field: str, name: str) -> str:
    """The name without white space around it. Raises InvalidValue if it is empty, too long or cannot be printed."""
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME:
        raise InvalidValue(field, f"needs 1 to {MAX_NAME} characters, got {len(name)}")
    if not name.isprintable():
        raise InvalidValue(field, "needs characters that can be printed, on one line")
    return name
