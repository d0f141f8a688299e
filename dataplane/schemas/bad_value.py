"""The error of a value that its schema refuses, while the path to it is collected. Pure."""

from collections.abc import Mapping
from typing import Any, Final, Self

from dataplane.schemas.avro import AvroType
from dataplane.schemas.types import SchemaRejectedError
from dataplane.spec.schema import pointer_of

_KINDS: Final[Mapping[type, str]] = {
    dict: "an object",
    list: "an array",
    str: "a text",
    bool: "a boolean",
    type(None): "null",
}


class BadValueError(Exception):
    """A value is refused. `parts`: the keys that lead to it, innermost first."""

    is_mismatch = False

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.parts: list[str] = []

    @property
    def reason(self) -> str:
        """Return what is needed."""
        return str(self.args[0])

    def below(self, name: str) -> Self:
        """Add the key under which the refused value is."""
        self.parts.append(name)
        return self

    def rejected(self) -> SchemaRejectedError:
        """Return the error with the path as a JSON pointer."""
        return SchemaRejectedError(pointer_of(tuple(reversed(self.parts))), self.reason)


class WrongKindError(BadValueError):
    """A value is of another kind than its type. Unions raise many of these, so the text is built when it is read."""

    is_mismatch = True

    def __init__(self, node: AvroType, value: Any) -> None:
        super().__init__("")
        self._node, self._value = node, value

    @property
    def reason(self) -> str:
        """Return what is needed and what came."""
        return f"needs {self._node}, got {_KINDS.get(type(self._value), 'a number')}"
