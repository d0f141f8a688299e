"""Steps as form rows (an operation and up to three fields), and conversion from and to step documents. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, Final, Literal

from dataplane.spec.steps import STEP_TYPES

StepFieldKind = Literal["text", "json", "names", "number", "expression", "choice"]
Typed = tuple[str, str, str]


@dataclass(frozen=True)
class StepField:
    """Field of a step: its key in the document, label and input kind. `optional` fields may be empty."""

    key: str
    label: str
    kind: StepFieldKind = "text"
    choices: tuple[str, ...] = ()
    example: str = ""
    optional: bool = False


_PATH: Final = StepField("path", "Path", example="order.total")
_CONSTANT: Final = StepField("value", "Value (JSON or text)", "json", example="true")
# Fields with the same meaning have the same position, so that a change of operation keeps the input.
SLOTS: Final[Mapping[str, tuple[StepField | None, ...]]] = {
    "rename": (_PATH, StepField("to", "New path", example="order.amount")),
    "set": (_PATH, _CONSTANT),
    "default": (_PATH, _CONSTANT),
    "remove": (_PATH,),
    "keep": (None, StepField("fields", "Fields to keep (comma-separated)", "names", example="id, order.total")),
    "cast": (
        _PATH,
        StepField("to", "Type", "choice", ("int", "decimal", "bool", "string", "datetime", "uuid", "money")),
        StepField("currency", "Currency (for money)", example="EUR", optional=True),
    ),
    "mask": (_PATH, StepField("how", "Method", "choice", ("redact", "partial", "hash"))),
    "filter": (None, StepField("when", "Keep events when", "expression", example="body.total > 100")),
    "map": (_PATH, StepField("expr", "Value", "expression", example="body.price * double(body.count)")),
    "explode": (StepField("path", "Array path", example="order.lines"),),
    "peek": (StepField("name", "Name", example="after-cast"), StepField("share", "Share", "number", example="0.01")),
}
OPS: Final = tuple(SLOTS)
HELP: Final = [
    (str(kind.__struct_config__.tag), cleandoc(str(kind.__doc__)).partition("\n")[0].replace("`", ""))
    for kind in STEP_TYPES
]


@dataclass(frozen=True)
class StepRow:
    """Step as typed."""

    op: str = "rename"
    typed: Typed = ("", "", "")

    @property
    def slots(self) -> tuple[tuple[int, StepField], ...]:
        """Fields of the operation, with their indexes in `typed`."""
        return tuple((place, slot) for place, slot in enumerate(SLOTS.get(self.op, ())) if slot is not None)

    @property
    def empty(self) -> bool:
        """True for a row without input; it is left out."""
        return not any(self.typed[place].strip() for place, slot in self.slots if slot.kind != "choice")


def row_to_step(row: StepRow) -> dict[str, Any]:
    """Return the step document of a row, not validated."""
    step: dict[str, Any] = {"op": row.op}
    for place, slot in row.slots:
        text = row.typed[place].strip()
        if text or not slot.optional:
            step[slot.key] = _meaning(slot, text)
    return step


def step_to_row(step: Mapping[str, Any]) -> StepRow:
    """Return the row of a valid step; the inverse of `row_to_step`."""
    typed = ["", "", ""]
    for place, slot in StepRow(str(step["op"])).slots:
        value = step.get(slot.key)
        if value is not None or slot.kind == "json":
            typed[place] = _as_typed(slot, value)
    return StepRow(str(step["op"]), (typed[0], typed[1], typed[2]))


def json_or_text(text: str) -> Any:
    """Parse JSON such as 42, true or {"a": 1}; return other text unchanged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _meaning(slot: StepField, text: str) -> Any:
    match slot.kind:
        case "json":
            return json_or_text(text)
        case "names":
            return [name.strip() for name in text.split(",") if name.strip()]
        case "number":
            return json_or_text(text)
        case "choice":
            return text if text in slot.choices else slot.choices[0]
    return text


def _as_typed(slot: StepField, value: Any) -> str:
    if slot.kind == "names":
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False) if slot.kind in ("json", "number") else str(value)
