"""The error of a step."""

from typing import Any


class StepError(Exception):
    """A step cannot run on this message.

    path:  the field
    cause: what was needed and what came, never the value itself
    """

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"{path}: {cause}")
        self.path = path
        self.cause = cause


def kind(value: Any) -> str:
    """Return the name of a JSON value's kind, for error texts."""
    names = {dict: "an object", list: "an array", str: "text", bool: "a boolean", int: "a number", float: "a number"}
    return "null" if value is None else names.get(type(value), "a number")
