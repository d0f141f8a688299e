"""Steps as rows of a form: an operation, a path and one argument, to and from the spec's step documents. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

OPS: Final = ("set", "remove", "rename", "keep", "cast", "mask")
CAST_TYPES: Final = ("int", "decimal", "bool", "string", "datetime")
MASKS: Final = ("redact", "partial")
_ROW_KEYS: Final = {"op", "path", "value", "to", "how", "fields"}
_CHOICES: Final[Mapping[str, Sequence[str]]] = {"cast": CAST_TYPES, "mask": MASKS}
_LABELS: Final = {
    "set": "Value, as JSON or text",
    "rename": "New path",
    "keep": "Fields to keep, with commas",
    "cast": "Type",
    "mask": "How",
}


@dataclass(frozen=True)
class StepRow:
    """One row as typed. `error` is shown under it."""

    op: str = "rename"
    path: str = ""
    argument: str = ""
    error: str = ""

    @property
    def has_path(self) -> bool:
        """Keep names its fields in the argument."""
        return self.op != "keep"

    @property
    def choices(self) -> Sequence[str]:
        """The arguments allowed, if they are a closed list."""
        return _CHOICES.get(self.op, ())

    @property
    def argument_label(self) -> str:
        """What the argument means; empty if the operation takes none."""
        return _LABELS.get(self.op, "")

    @property
    def empty(self) -> bool:
        """A row nobody filled in; it is left out."""
        return not self.path.strip() and not self.argument.strip()


def fits_row(step: Mapping[str, Any]) -> bool:
    """Whether a row can hold all of a step that the spec's parser accepted."""
    return step.get("op") in OPS and set(step) <= _ROW_KEYS


def row_to_step(row: StepRow) -> dict[str, Any]:
    """The step document of a row; the spec's own parser judges it."""
    path, argument = row.path.strip(), row.argument.strip()
    match row.op:
        case "set":
            return {"op": "set", "path": path, "value": _value(argument)}
        case "rename":
            return {"op": "rename", "path": path, "to": argument}
        case "keep":
            return {"op": "keep", "fields": [name.strip() for name in argument.split(",") if name.strip()]}
        case "cast":
            return {"op": "cast", "path": path, "to": argument or CAST_TYPES[0]}
        case "mask":
            return {"op": "mask", "path": path, "how": argument or MASKS[0]}
        case _:
            return {"op": row.op, "path": path}


def step_to_row(step: Mapping[str, Any]) -> StepRow:
    """The inverse of row_to_step, for a step that the spec's parser accepted."""
    op, path = str(step["op"]), str(step.get("path", ""))
    match op:
        case "set":
            return StepRow(op, path, json.dumps(step["value"], ensure_ascii=False))
        case "keep":
            return StepRow(op, "", ", ".join(step["fields"]))
        case "mask":
            return StepRow(op, path, str(step.get("how", MASKS[0])))
        case _:
            return StepRow(op, path, str(step.get("to", "")))


def _value(text: str) -> Any:
    """JSON if it reads as JSON, else the text itself: 42, true and {"a": 1}, but also plain words."""
    try:
        return json.loads(text)
    except ValueError:
        return text
