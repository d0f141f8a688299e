"""How a step fails."""

from typing import Any


class StepError(Exception):
    """A step cannot be done on this message. `path` is the field, `cause` what was needed; never the value itself."""

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"{path}: {cause}")
        self.path = path
        self.cause = cause


def kind(value: Any) -> str:
    """What an error calls a JSON value."""
    names = {dict: "an object", list: "an array", str: "text", bool: "a boolean", int: "a number", float: "a number"}
    return "null" if value is None else names.get(type(value), "a number")
