"""The pipe form: what was typed, the spec document it means, and which field a spec error belongs to.

The form covers one source and one destination with common steps. Whatever else a spec holds is kept as it is: the form
changes only its own fields of the document it started from. Specs beyond that are edited as JSON.
"""

import copy
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django import forms
from django.http import QueryDict

from dataplane.spec import SpecError, parse_pipe_spec
from mgmt.console.steps import StepRow, fits_row, row_to_step, step_to_row

_TEXT = {"class": "form-control", "autocomplete": "off", "spellcheck": "false"}
_READING = ("version", "sources", "normalize", "transform", "destinations", "type", "op", "url", "path")
_PLAIN = ("source", "event_time", "destination", "url")
_FORM_HOLDS = "one source, one http destination, and the steps of its list"
_STEP_PATH = re.compile(r"^\$\.normalize\[(\d+)\]")


class PipeForm(forms.Form):
    """The fields beside the steps. What a spec may hold is judged by the spec's own parser, not here."""

    name = forms.CharField(label="Name of the pipe", max_length=80, widget=forms.TextInput(_TEXT))
    source = forms.CharField(
        label="Source", max_length=40, initial="web", help_text="Short, lower case, with hyphens: who sends.",
        widget=forms.TextInput(_TEXT),
    )  # fmt: skip
    event_time = forms.CharField(
        label="Path of the event's time", max_length=200, required=False,
        help_text="Such as created_at. Empty: the moment we receive it.",
        widget=forms.TextInput(_TEXT | {"placeholder": "created_at"}),
    )  # fmt: skip
    destination = forms.CharField(
        label="Destination", max_length=40, initial="main", help_text="Short, lower case, with hyphens: who receives.",
        widget=forms.TextInput(_TEXT),
    )  # fmt: skip
    url = forms.CharField(
        label="Destination's URL", max_length=2_000,
        help_text="We POST every event here, signed after Standard Webhooks.",
        widget=forms.URLInput(_TEXT | {"placeholder": "https://example.com/hooks"}),
    )  # fmt: skip


@dataclass(frozen=True)
class Draft:
    """A pipe as it stands on the form."""

    form: PipeForm
    steps: tuple[StepRow, ...] = ()
    as_json: bool = False
    text: str = ""
    text_error: str = ""
    base: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """The spec document. Raises ValueError if the JSON text is none or no object."""
        if self.as_json:
            return _object(self.text)
        return _merge(self.base, self.form.cleaned_data, [row_to_step(row) for row in self.filled])

    @property
    def filled(self) -> list[StepRow]:
        """The rows that count."""
        return [row for row in self.steps if not row.empty]

    def valid(self) -> bool:
        """Whether the plain fields are filled in; as JSON only the name counts."""
        if self.as_json:
            for name in _PLAIN:
                self.form.fields.pop(name, None)
        return self.form.is_valid()

    def unbound(self) -> "Draft":
        """The same draft without errors: nobody asked to save yet."""
        return replace(
            self, form=PipeForm(initial=dict(self.form.data.items()) if self.form.is_bound else self.form.initial)
        )

    def written_as_json(self) -> "Draft":
        """What stands on the form as JSON text, whether it could be saved or not."""
        typed = {name: self.form.data.get(name, "").strip() for name in _PLAIN}
        text = readable(_merge(self.base, typed, [row_to_step(row) for row in self.filled]))
        return replace(self.unbound(), as_json=True, text=text)

    def shown_as_form(self) -> "Draft":
        """The JSON text on the form; as JSON still, with the reason, if the form cannot hold it."""
        try:
            document = _object(self.text)
            parse_pipe_spec(document)
        except SpecError as exc:
            return self.unbound().with_error(exc.path, exc.reason)
        except ValueError as exc:
            return replace(self.unbound(), text_error=f"This is not JSON: {exc}")
        if not fits_form(document):
            return replace(self.unbound(), text_error=f"The form cannot show this: it holds {_FORM_HOLDS}.")
        return draft_from_spec(self.form.data.get("name", ""), document)

    def with_error(self, path: str, reason: str) -> "Draft":
        """The draft with a spec error under the field it belongs to."""
        if self.as_json:
            return replace(self, text_error=f"{path}: {reason}")
        if match := _STEP_PATH.match(path):
            return replace(
                self, steps=_mark(self.filled, int(match[1]), f"{path[match.end() + 1 :] or 'step'}: {reason}")
            )
        self.form.add_error(_field_of(path), reason)
        return self


def draft_from_post(post: QueryDict, base: Mapping[str, Any], *, name: str = "") -> Draft:
    """What was sent, as a draft; an existing pipe's name is not asked for."""
    as_json = post.get("mode") == "json"
    rows = zip(post.getlist("step_op"), post.getlist("step_path"), post.getlist("step_argument"), strict=False)
    form = PipeForm(post)
    if name:
        del form.fields["name"]
    return Draft(
        form=form,
        steps=tuple(StepRow(*row) for row in rows),
        as_json=as_json,
        text=post.get("spec", ""),
        base=base if as_json else _carried(post.get("spec", ""), base),
    )


def draft_from_spec(name: str, document: Mapping[str, Any], *, as_json: bool = False) -> Draft:
    """A stored spec as a draft; as JSON if the form cannot hold it."""
    text = readable(document)
    (source, source_spec), (destination, destination_spec) = (
        next(iter(document["sources"].items())),
        next(iter(document["destinations"].items())),
    )
    initial = {
        "name": name,
        "source": source,
        "event_time": source_spec.get("event_time") or "",
        "destination": destination,
        "url": destination_spec["url"],
    }
    rows = tuple(step_to_row(step) for step in document.get("normalize", []))
    return Draft(PipeForm(initial=initial), rows, as_json=as_json or not fits_form(document), text=text, base=document)


def starting_text() -> str:
    """What the JSON editor starts with: the smallest spec, ready to be filled in."""
    document = {
        "version": 1,
        "sources": {"web": {"type": "http"}},
        "normalize": [],
        "destinations": {"main": {"type": "http", "url": "https://example.com/hooks"}},
    }
    return json.dumps(document, indent=2)


def readable(document: Mapping[str, Any]) -> str:
    """A spec as text, in the order in which people think of it: the database keeps none."""
    return json.dumps(_in_order(document), indent=2, ensure_ascii=False)


def fits_form(document: Mapping[str, Any]) -> bool:
    """Whether the form shows all of a spec that it would change."""
    destinations = document.get("destinations", {})
    return (
        len(document.get("sources", {})) == len(destinations) == 1
        and all(one.get("type") == "http" for one in destinations.values())
        and all(fits_row(step) for step in document.get("normalize", []))
    )


def _object(text: str) -> dict[str, Any]:
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("needs a JSON object")
    return document


def _carried(text: str, stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the form started from: it may have been written as JSON in between, and holds more than the form shows."""
    try:
        document = _object(text)
        parse_pipe_spec(document)
    except (ValueError, SpecError):
        return stored
    return document if fits_form(document) else stored


def _merge(base: Mapping[str, Any], typed: Mapping[str, str], steps: list[dict[str, Any]]) -> dict[str, Any]:
    document = copy.deepcopy(dict(base)) or {"version": 1}
    source = next(iter(document.get("sources", {}).values()), {"type": "http"})
    destination = next(iter(document.get("destinations", {}).values()), {"type": "http"})
    document["sources"] = {typed["source"]: source | {"event_time": typed["event_time"] or None}}
    document["destinations"] = {typed["destination"]: destination | {"url": typed["url"]}}
    document["normalize"] = steps
    if base.get("transform"):  # its one destination may have been renamed
        document["transform"] = {typed["destination"]: next(iter(base["transform"].values()))}
    return document


def _in_order(value: Any) -> Any:
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda key: (_READING.index(key) if key in _READING else len(_READING), key))
        return {key: _in_order(value[key]) for key in keys}
    return [_in_order(one) for one in value] if isinstance(value, list) else value


def _mark(rows: list[StepRow], index: int, error: str) -> tuple[StepRow, ...]:
    return tuple(replace(row, error=error) if place == index else row for place, row in enumerate(rows))


def _field_of(path: str) -> str | None:
    if path.startswith("$.sources"):
        return "event_time" if path.endswith("event_time") else "source"
    if path.startswith("$.destinations"):
        return "url" if path.endswith("url") else "destination"
    return None
