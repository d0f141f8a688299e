"""Steps as rows of a form: an operation and up to three fields, to and from the spec's step documents. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, Final, Literal

from dataplane.spec.steps import STEP_TYPES

Kind = Literal["text", "json", "names", "number", "expression", "choice"]
Typed = tuple[str, str, str]


@dataclass(frozen=True)
class Slot:
    """One field of a step: its key in the document, what it means, how it is typed. `optional` ones may stay empty."""

    key: str
    label: str
    kind: Kind = "text"
    choices: tuple[str, ...] = ()
    example: str = ""
    optional: bool = False


_PATH: Final = Slot("path", "Path", example="order.total")
_CONSTANT: Final = Slot("value", "Value, as JSON or text", "json", example="true")
# Fields with one meaning keep their place, so that another operation takes over what was typed.
SLOTS: Final[Mapping[str, tuple[Slot | None, ...]]] = {
    "rename": (_PATH, Slot("to", "New path", example="order.amount")),
    "set": (_PATH, _CONSTANT),
    "default": (_PATH, _CONSTANT),
    "remove": (_PATH,),
    "keep": (None, Slot("fields", "Fields to keep, with commas", "names", example="id, order.total")),
    "cast": (
        _PATH,
        Slot("to", "Type", "choice", ("int", "decimal", "bool", "string", "datetime", "uuid", "money")),
        Slot("currency", "Currency of money", example="EUR", optional=True),
    ),
    "mask": (_PATH, Slot("how", "How", "choice", ("redact", "partial", "hash"))),
    "filter": (None, Slot("when", "Goes on when", "expression", example="body.total > 100")),
    "map": (_PATH, Slot("expr", "Value", "expression", example="body.price * double(body.count)")),
    "explode": (Slot("path", "Array", example="order.lines"),),
    "peek": (Slot("name", "Name", example="after-cast"), Slot("share", "Share", "number", example="0.01")),
}
OPS: Final = tuple(SLOTS)
HELP: Final = [
    (str(kind.__struct_config__.tag), cleandoc(str(kind.__doc__)).partition("\n")[0].replace("`", ""))
    for kind in STEP_TYPES
]


@dataclass(frozen=True)
class StepRow:
    """One row as typed."""

    op: str = "rename"
    typed: Typed = ("", "", "")

    @property
    def slots(self) -> tuple[tuple[int, Slot], ...]:
        """The fields that the operation has, with their places in `typed`."""
        return tuple((place, slot) for place, slot in enumerate(SLOTS.get(self.op, ())) if slot is not None)

    @property
    def empty(self) -> bool:
        """A row nobody filled in; it is left out."""
        return not any(self.typed[place].strip() for place, slot in self.slots if slot.kind != "choice")


def row_to_step(row: StepRow) -> dict[str, Any]:
    """The step document of a row; the spec's own parser judges it."""
    step: dict[str, Any] = {"op": row.op}
    for place, slot in row.slots:
        text = row.typed[place].strip()
        if text or not slot.optional:
            step[slot.key] = _meaning(slot, text)
    return step


def step_to_row(step: Mapping[str, Any]) -> StepRow:
    """The inverse of row_to_step, for a step that the spec's parser accepted."""
    typed = ["", "", ""]
    for place, slot in StepRow(str(step["op"])).slots:
        value = step.get(slot.key)
        if value is not None or slot.kind == "json":
            typed[place] = _as_typed(slot, value)
    return StepRow(str(step["op"]), (typed[0], typed[1], typed[2]))


def json_or_text(text: str) -> Any:
    """JSON if it reads as JSON, else the text itself: 42, true and {"a": 1}, but also plain words."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _meaning(slot: Slot, text: str) -> Any:
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


def _as_typed(slot: Slot, value: Any) -> str:
    if slot.kind == "names":
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False) if slot.kind in ("json", "number") else str(value)
