"""Condition over one field of an event, from the fields of a form, as an expression of the tenant language. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dataplane.spec.steps import PATH
from dataplane.stages.paths import EACH, compile_path

OPERATORS: Final[Mapping[str, str]] = {
    "is": "=",
    "contains": "contains",
    "above": ">",
    "below": "<",
    "exists": "exists",
}
MOST_PATH: Final = 200
MOST_VALUE: Final = 200
MOST_EACH: Final = 2  # nested comprehensions of an expression
_NUMBER: Final = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?")
_CONSTANTS: Final = ("true", "false", "null")


class FieldConditionError(ValueError):
    """The form's fields give no condition; the message is a sentence for the customer. `field`: the form's field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class FieldCondition:
    """Field of the body by its path, an operator of OPERATORS, and the value to compare with."""

    path: str = ""
    operator: str = "is"
    value: str = ""

    def expression(self) -> str:
        """Return the condition as an expression. Raises FieldConditionError.

        A value that looks like a number equals the number and the text, because senders use both.
        """
        if len(self.path) > MOST_PATH or not re.fullmatch(PATH, self.path):
            raise FieldConditionError("field", "Enter the path of a field, such as order.total or lines.*.sku.")
        segments = compile_path(self.path)
        if segments.count(EACH) > MOST_EACH:
            raise FieldConditionError("field", f"Use * at most {MOST_EACH} times in a path.")
        if self.operator not in OPERATORS:
            raise FieldConditionError("op", f"Choose one of {', '.join(OPERATORS)}.")
        if len(self.value) > MOST_VALUE or "\x00" in self.value:
            raise FieldConditionError("value", f"Enter at most {MOST_VALUE} characters.")
        if self.operator in ("contains", "above", "below") and not self.value:
            raise FieldConditionError("value", "Enter a value to compare with.")
        return self._over("body", segments)

    def _over(self, holder: str, segments: tuple[str, ...]) -> str:
        """Return the condition on the value at the segments below an expression; `*` is any element."""
        if EACH not in segments:
            return self._compared(holder + "".join(map(_index, segments)))
        at = segments.index(EACH)
        each = f"e{len(segments)}"
        inner = self._over(each, segments[at + 1 :])
        return f"{holder}{''.join(map(_index, segments[:at]))}.exists({each}, {inner})"

    def _compared(self, value: str) -> str:
        number = self.value if _NUMBER.fullmatch(self.value) else ""
        text = _text(self.value)
        match self.operator:
            case "exists":
                return f"{value} == {value}"  # a missing field is an error, which does not match
            case "contains":
                return f"string({value}).contains({text})"
            case "is":
                plain = number or (self.value if self.value in _CONSTANTS else "")
                return f"{value} == {plain} || {value} == {text}" if plain else f"{value} == {text}"
        sign = OPERATORS[self.operator]
        return f"{value} {sign} {number} || double({value}) {sign} {number}" if number else f"{value} {sign} {text}"


def _index(segment: str) -> str:
    return f"[{int(segment)}]" if segment.isdecimal() else f"[{_text(segment)}]"


def _text(value: str) -> str:
    """Return a text constant. Its escapes are the same in JSON and in the tenant language."""
    return json.dumps(value, ensure_ascii=False)
