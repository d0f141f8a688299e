"""Steps as rows of a form: an operation, a path and one argument, to and from the spec's step documents. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

OPS: Final = ("set", "default", "remove", "rename", "keep", "cast", "mask", "filter", "map", "explode")
CAST_TYPES: Final = ("int", "decimal", "bool", "string", "datetime", "uuid", "money")
MASKS: Final = ("redact", "partial", "hash")
_ROW_KEYS: Final = {"op", "path", "value", "to", "how", "fields", "when", "expr"}
_CHOICES: Final[Mapping[str, Sequence[str]]] = {"cast": CAST_TYPES, "mask": MASKS}
_LABELS: Final = {
    "set": "Value, as JSON or text",
    "default": "Value, as JSON or text",
    "rename": "New path",
    "keep": "Fields to keep, with commas",
    "cast": "Type",
    "mask": "How",
    "filter": "Goes on when, such as body.total > 100",
    "map": "Value, such as body.total * 2",
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
        """Keep names its fields in the argument; a filter is all condition."""
        return self.op not in ("keep", "filter")

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
    said = {key for key, value in step.items() if value is not None or key == "value"}
    return step.get("op") in OPS and said <= _ROW_KEYS


def row_to_step(row: StepRow) -> dict[str, Any]:
    """The step document of a row; the spec's own parser judges it."""
    argument = row.argument.strip()
    return {"op": row.op} | ({"path": row.path.strip()} if row.has_path else {}) | _argument_of(row.op, argument)


def _argument_of(op: str, argument: str) -> dict[str, Any]:
    """The field of the step that a row's argument fills."""
    meanings: dict[str, dict[str, Any]] = {
        "set": {"value": _value(argument)},
        "default": {"value": _value(argument)},
        "rename": {"to": argument},
        "keep": {"fields": [name.strip() for name in argument.split(",") if name.strip()]},
        "cast": {"to": argument or CAST_TYPES[0]},
        "mask": {"how": argument or MASKS[0]},
        "filter": {"when": argument},
        "map": {"expr": argument},
    }
    return meanings.get(op, {})


def step_to_row(step: Mapping[str, Any]) -> StepRow:
    """The inverse of row_to_step, for a step that the spec's parser accepted."""
    op, path = str(step["op"]), str(step.get("path", ""))
    match op:
        case "set" | "default":
            return StepRow(op, path, json.dumps(step["value"], ensure_ascii=False))
        case "filter":
            return StepRow(op, "", str(step["when"]))
        case "map":
            return StepRow(op, path, str(step["expr"]))
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
