"""Form of a new shadow run: the draft in hidden fields, and the events to run it over."""

import json
from datetime import datetime, timedelta
from typing import Any, Final

from django import forms
from django.http import QueryDict

from dataplane.spec import spec_to_builtins
from mgmt.cells.run_form import TIME_FORMATS, RunForm
from mgmt.deliveries.credential_form import PREFIX as CREDENTIAL
from mgmt.models import Shadow
from mgmt.shadows.services.shadows import EVENTS, MOST_EVENTS, CheckedShadow, ShadowRequest

PREFIX: Final = "shadow"  # of the form's fields, which are posted together with those of the editor
NEWEST, RANGE, FOLLOW = "newest", "range", "follow"
_NOT_CARRIED: Final = ("csrfmiddlewaretoken", "action")
_HOUR: Final = timedelta(hours=1)
_INVALID: Final = "needs a JSON object"


class ShadowForm(RunForm):
    """Draft and the events to run it over. The service checks what needs the pipe's rows."""

    document = forms.CharField(widget=forms.HiddenInput, strip=False)
    based_on = forms.IntegerField(min_value=1, max_value=2**31 - 1, widget=forms.HiddenInput)
    over = forms.ChoiceField(
        choices=[(NEWEST, "The newest events"), (RANGE, "Events of a time range"), (FOLLOW, "Live traffic")],
        initial=NEWEST,
    )
    events = forms.IntegerField(
        label="Number of events",
        required=False,
        min_value=1,
        max_value=MOST_EVENTS,
        initial=EVENTS,
        help_text=f"At most {MOST_EVENTS:,}.",
        widget=forms.NumberInput({"class": "form-control"}),
    )
    since = forms.DateTimeField(label="From", required=False, input_formats=TIME_FORMATS)
    until = forms.DateTimeField(label="To", required=False, input_formats=TIME_FORMATS)

    def __init__(self, data: QueryDict | None = None, **more: Any) -> None:
        super().__init__(data, prefix=PREFIX, **more)

    @property
    def chosen(self) -> str:
        """Value of the choice of events, as sent or filled in."""
        return str(self["over"].value() or NEWEST)

    def clean_document(self) -> dict[str, Any]:
        """Return the draft's document."""
        try:
            found = json.loads(self.cleaned_data["document"])
        except (ValueError, RecursionError) as exc:
            raise forms.ValidationError(_INVALID) from exc
        if not isinstance(found, dict):
            raise forms.ValidationError(_INVALID)
        return found

    def clean(self) -> dict[str, Any]:
        """Check that the chosen events are described."""
        found = dict(super().clean() or {})
        if found.get("over") == NEWEST and found.get("events") is None and "events" not in self.errors:
            self.add_error("events", f"Enter a number from 1 to {MOST_EVENTS:,}.")
        if found.get("over") == RANGE:
            for name in ("since", "until"):
                if found.get(name) is None and name not in self.errors:
                    self.add_error(name, "Enter a date and a time.")
        return found

    def shadow_request(self) -> ShadowRequest:
        """Return the request of a valid form."""
        found = self.cleaned_data
        if found["over"] == FOLLOW:
            return ShadowRequest(follow=True)
        if found["over"] == NEWEST:
            return ShadowRequest(events=found["events"])
        return ShadowRequest(since=found["since"], until=found["until"])


def new_shadow_context(post: QueryDict, checked: CheckedShadow) -> dict[str, Any]:
    """Return the context of the form for a draft that the editor has posted, whose fields are carried along."""
    document = json.dumps(spec_to_builtins(checked.spec))
    form = ShadowForm(initial=_initial(document, checked.based_on, checked.until or checked.since))
    return {"form": form, "live": checked.revision, "carried": carried_fields(post)}


def values_of(shadow: Shadow, newest: int, now: datetime) -> dict[str, Any]:
    """Return the values of the form for the draft and events of an earlier run. `newest`: the newest revision."""
    values = _initial(json.dumps(shadow.spec), newest, now)
    if shadow.follows:
        values["over"] = FOLLOW
    elif shadow.most_events < MOST_EVENTS:
        values["events"] = shadow.most_events
    return values


def carried_fields(post: QueryDict) -> list[tuple[str, str]]:
    """Return the posted fields of the editor, without secrets."""
    kept = [name for name in post if name not in _NOT_CARRIED and not name.startswith((f"{PREFIX}-", CREDENTIAL))]
    return [(name, value) for name in kept for value in post.getlist(name)]


def _initial(document: str, based_on: int, now: datetime) -> dict[str, Any]:
    until = now.replace(second=0, microsecond=0)
    times = {"since": (until - _HOUR).strftime(TIME_FORMATS[1]), "until": until.strftime(TIME_FORMATS[1])}
    return {"document": document, "based_on": based_on, "events": EVENTS, "over": NEWEST} | times
