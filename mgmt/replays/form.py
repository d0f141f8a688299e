"""Form of a new replay: fields, values that links and earlier replays fill in, and conversion to a request."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django import forms
from django.http import QueryDict

from dataplane.plan.outbound import address_of
from dataplane.spec import PipeSpec, RemoteDestination, keeps_newest
from dataplane.spec.storage import LakeDestination, TopicDestination
from mgmt.cells.run_form import TIME_FORMATS, RunForm
from mgmt.models import Destination, PipeRevision, Replay
from mgmt.replays.services.replays import (
    LEAST_RATE_PER_S,
    LONGEST,
    MOST_IDS,
    MOST_KEYS,
    MOST_WHERE_CHARS,
    RATE_PER_S,
    ReplayRequest,
)

_TEXT: Final = {"class": "form-control", "autocomplete": "off", "spellcheck": "false"}
_CODE: Final = {"class": "form-control font-monospace", "autocomplete": "off", "spellcheck": "false"}
LIVE: Final = "live"  # value of the revision that is live at the start
_DEFAULT: Final = timedelta(hours=1)
_FIRST_YEAR: Final = 1970  # of a link's times; an hour before the first representable one cannot be computed
_TIME_ERRORS: Final = {"required": "Enter a date and a time.", "invalid": "Enter a date and a time."}


@dataclass(frozen=True)
class DestinationChoice:
    """Destination of the form. `why_not`: why it cannot be chosen; "" if it can."""

    name: str
    address: str
    why_not: str


@dataclass(frozen=True)
class ReplayOptions:
    """Choices of the form: destinations, revisions with their labels, and the limit of the rate."""

    destinations: list[DestinationChoice]
    revisions: list[tuple[str, str]]
    most_per_s: int
    now: datetime

    @property
    def possible(self) -> list[str]:
        """Names of the destinations that can be chosen."""
        return [one.name for one in self.destinations if not one.why_not]


def destination_choices(spec: PipeSpec, states: Mapping[str, str]) -> list[DestinationChoice]:
    """Return the destinations of a spec in its order, with the reason for those that no replay can send to.

    states: state of each destination by name
    """
    return [
        DestinationChoice(name, address_of(to), _why_not(to, states.get(name, "")))
        for name, to in spec.destinations.items()
    ]


def revision_choices(rows: Iterable[PipeRevision]) -> list[tuple[str, str]]:
    """Return the choices of the revision: the live one, whichever it is at the start, and each of `rows`."""
    numbered = [(row.number, row.state) for row in rows]
    live = next((number for number, state in numbered if state == PipeRevision.State.LIVE), None)
    first = (LIVE, f"live, now @{live}" if live else "live")
    return [first, *((str(number), f"@{number}, {state}") for number, state in numbered)]


class ReplayForm(RunForm):
    """Selection of events, and how to send them. The service checks what needs the pipe's rows."""

    since = forms.DateTimeField(label="From", input_formats=TIME_FORMATS, error_messages=_TIME_ERRORS)
    until = forms.DateTimeField(label="To", input_formats=TIME_FORMATS, error_messages=_TIME_ERRORS)
    destinations = forms.MultipleChoiceField(
        label="Destinations", error_messages={"required": "Select at least one destination."}
    )
    revision = forms.TypedChoiceField(
        label="Revision",
        help_text="Its steps, routes and transforms run on the original events.",
        initial=LIVE,
        coerce=lambda value: None if value == LIVE else int(value),
        widget=forms.Select({"class": "form-select"}),
    )
    where = forms.CharField(
        label="Filter expression",
        help_text='Only events for which it is true, such as body.order.total > 100 or meta.source == "shop".',
        required=False,
        max_length=MOST_WHERE_CHARS,
        widget=forms.Textarea(_CODE | {"rows": 2}),
    )
    keys = forms.CharField(
        label="Keys",
        help_text="One a line. Only events with one of these keys.",
        required=False,
        strip=False,
        widget=forms.Textarea(_CODE | {"rows": 3}),
    )
    ids = forms.CharField(
        label="Message ids",
        help_text="One a line. Only events with one of these ids, which receivers see as webhook-id.",
        required=False,
        widget=forms.Textarea(_CODE | {"rows": 3}),
    )
    rate_per_s = forms.FloatField(label="Messages per second", widget=forms.NumberInput(_TEXT | {"step": "any"}))

    def __init__(self, options: ReplayOptions, **more: Any) -> None:
        super().__init__(**more)
        self.options = options
        self.fields["destinations"].choices = [(one.name, one.name) for one in options.destinations]  # type: ignore[attr-defined]
        self.fields["revision"].choices = options.revisions  # type: ignore[attr-defined]
        self.fields["rate_per_s"].help_text = (
            f"At most {options.most_per_s}, the limit of your tenant, over all destinations. "
            "The limits of each destination's delivery settings also apply."
        )

    def clean(self) -> dict[str, Any]:
        """Check the fields against each other and the limits, in the words of the form."""
        found = dict(super().clean() or {})
        since, until = found.get("since"), found.get("until")
        if until and until > self.options.now:
            self.add_error("until", "Select an end in the past: a replay has only events that have arrived.")
        elif since and until and since >= until:
            self.add_error("until", "Select an end after the start.")
        elif since and until and until - since > LONGEST:
            self.add_error("since", f"Select at most {LONGEST.days} days. Use several replays for a longer time.")
        for name, most in (("keys", MOST_KEYS), ("ids", MOST_IDS)):
            if len(lines := _lines(found.get(name, ""))) > most:
                self.add_error(name, f"Enter at most {most}, not {len(lines)}. Use a filter or several replays.")
        rate = found.get("rate_per_s")
        if rate is not None and not LEAST_RATE_PER_S <= rate <= self.options.most_per_s:
            self.add_error("rate_per_s", f"Enter a number from {LEAST_RATE_PER_S:g} to {self.options.most_per_s}.")
        return found

    def focus_first_error(self) -> None:
        """Give the focus to the first field with an error."""
        first = next((name for name in self.fields if name in self.errors), None)
        if first:
            self.fields[first].widget.attrs["autofocus"] = True

    def selected(self) -> list[str]:
        """Return the names of the selected destinations, as typed or filled in."""
        return list(self["destinations"].value() or ())

    def replay_request(self, *, rehearsal: bool) -> ReplayRequest:
        """Return the request of a valid form."""
        found = self.cleaned_data
        return ReplayRequest(
            since=found["since"],
            until=found["until"],
            revision=found["revision"],
            destinations=found["destinations"],
            where=found["where"],
            keys=_lines(found["keys"]),
            ids=_lines(found["ids"]),
            rate_per_s=found["rate_per_s"],
            rehearsal=rehearsal,
        )


def start_values(query: QueryDict, options: ReplayOptions) -> dict[str, Any]:
    """Return the values of the form from a link's `from`, `to`, `destination` and `ids`; by default the last hour.

    Times are in UTC, such as `2026-05-03T02:14`; invalid ones are ignored, and an end in the future is now.
    """
    until = min(_time(query.get("to", "")) or _minute(options.now), options.now.replace(microsecond=0))
    since = _time(query.get("from", "")) or until - _DEFAULT
    wanted = [name for name in query.getlist("destination") if name in options.possible]
    return {
        "since": _typed(since),
        "until": _typed(until),
        "destinations": wanted or options.possible,
        "ids": query.get("ids", "").replace("\x00", "").replace(",", "\n"),
        "rate_per_s": f"{min(RATE_PER_S, options.most_per_s):g}",
    }


def values_of(replay: Replay) -> dict[str, Any]:
    """Return the values of the form for the settings of an earlier replay; parts of a second extend its range."""
    until = replay.until
    if until.microsecond:
        until = until.replace(microsecond=0) + timedelta(seconds=1)
    return {
        "since": _typed(replay.since),
        "until": _typed(until),
        "destinations": replay.destinations,
        "revision": replay.revision,
        "where": replay.where,
        "keys": "\n".join(replay.keys),
        "ids": "\n".join(replay.ids),
        "rate_per_s": f"{replay.rate_per_s:g}",
    }


def posted_values(data: QueryDict) -> dict[str, Any]:
    """Return the values of the form as they were sent."""
    return {name: data.get(name, "") for name in ReplayForm.base_fields} | {
        "destinations": data.getlist("destinations")
    }


def _why_not(to: object, state: str) -> str:
    if isinstance(to, LakeDestination):
        return "a lake: recompute its table instead"
    if not isinstance(to, RemoteDestination | TopicDestination):
        return "a look-up table: it has only the current row of each key"
    if keeps_newest(to):
        kind = "a compacted topic" if isinstance(to, TopicDestination) else "a table whose rows are updated"
        return f"{kind}: earlier events would replace later ones"
    return "" if state == Destination.State.ACTIVE else f"{state or 'not deployed yet'}: resume it first"


def _lines(text: str) -> list[str]:
    """Return the lines that have a character other than blanks; blanks at the ends belong to a key."""
    return [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]


def _time(text: str) -> datetime | None:
    try:
        found: datetime = forms.DateTimeField(input_formats=TIME_FORMATS).clean(text)
    except forms.ValidationError:
        return None
    return found if found.year >= _FIRST_YEAR else None


def _typed(moment: datetime) -> str:
    return moment.strftime(TIME_FORMATS[0] if moment.second else TIME_FORMATS[1])


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)
