"""Bodies of the API's shadow runs."""

from typing import Any, Final

from rest_framework import serializers

from mgmt.models import Shadow
from mgmt.pipes.serializers import SpecField
from mgmt.shadows.models import KINDS
from mgmt.shadows.services.shadows import EVENTS, MOST_EVENTS
from mgmt.web.parsers import StrictSerializer
from mgmt.web.serializers import PageOut


class ShadowIn(StrictSerializer):
    """Draft to run over real events."""

    spec = SpecField()
    based_on = serializers.IntegerField(
        min_value=1,
        max_value=2**31 - 1,
        help_text="Number of the newest revision that you read, which the draft changes.",
    )
    follow = serializers.BooleanField(
        required=False, default=False, help_text="Follow live traffic from now on, until the run is stopped."
    )
    events = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=MOST_EVENTS,
        help_text=f"Number of events after which it ends, or soon after. Default: the newest {EVENTS:,}; with a range, "
        f"{MOST_EVENTS:,}.",
    )
    since = serializers.DateTimeField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Ingest time of the first events. Default: see `events`.",
    )
    until = serializers.DateTimeField(
        required=False, allow_null=True, default=None, help_text="Ingest time before which the last events arrived."
    )


class ShadowResultsOut(serializers.Serializer[Any]):
    """Messages of one destination by result: those of the draft, compared with what the pipe has sent."""

    equal = serializers.IntegerField(help_text="The draft would send the same body.")
    different = serializers.IntegerField(help_text="Both send it, with different bodies.")
    only_live = serializers.IntegerField(help_text="The live revision has sent it, and the draft would not.")
    only_draft = serializers.IntegerField(
        help_text="The draft would send it, and the live revision has ended it in a step or route."
    )
    not_sent = serializers.IntegerField(
        help_text="Both would send it, but no delivery was found: it is held, is a duplicate, still waits, or was sent "
        "much later than its event."
    )


class ShadowFieldOut(serializers.Serializer[Any]):
    """Field that differs in some messages of a destination."""

    destination = serializers.CharField()
    path = serializers.CharField(help_text="Empty for further fields, which are counted together.")
    count = serializers.IntegerField(help_text="Messages in which it differs.")


class ShadowValueOut(serializers.Serializer[Any]):
    """Values of a field that differ in one message, as JSON; null if the field is missing. Masked ones are masked."""

    path = serializers.CharField(help_text="Empty for the whole body, if one of both is not an object.")
    live = serializers.CharField(allow_null=True)
    draft = serializers.CharField(allow_null=True)


class ShadowSampleOut(serializers.Serializer[Any]):
    """Message that is not equal."""

    result = serializers.ChoiceField([name for name in KINDS if name != "equal"])
    destination = serializers.CharField()
    position = serializers.CharField(help_text="Position of its event, `<generation>-<partition>-<offset>`.")
    child = serializers.IntegerField(
        help_text="Number of the message within an exploded event; 0 if it is not exploded."
    )
    url = serializers.CharField(help_text="Path of the message in this API.")
    reason = serializers.CharField(help_text="Why the draft does not send it; empty if it does.")
    fields = ShadowValueOut(many=True)  # type: ignore[assignment]  # hides the serializer's own attribute


class ShadowCostOut(serializers.Serializer[Any]):
    """CPU time of the live revision and of the draft, measured for some of the events."""

    events = serializers.IntegerField(help_text="Events of which both were timed.")
    live_us = serializers.FloatField(help_text="Microseconds per event of the live revision.")
    draft_us = serializers.FloatField(help_text="Microseconds per event of the draft.")


class ShadowOut(serializers.Serializer[Any]):
    """A shadow run and its progress."""

    id = serializers.CharField()
    state = serializers.ChoiceField(Shadow.State.choices)
    revision = serializers.IntegerField(help_text="Live revision that the draft is compared with.")
    based_on = serializers.IntegerField(help_text="Newest revision at the start; the draft is promoted on top of it.")
    promoted = serializers.IntegerField(allow_null=True, help_text="Revision that the draft was published as.")
    follow = serializers.BooleanField(source="follows")
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True, help_text="Null if it follows live traffic.")
    most_events = serializers.IntegerField(help_text="Events after which it ends, or soon after; 0 for no limit.")
    by = serializers.CharField(source="by.username", allow_null=True, default=None)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True, help_text="Null while it waits for the cell.")
    finished_at = serializers.DateTimeField(allow_null=True)
    share = serializers.FloatField(
        allow_null=True, help_text="Compared part, 0 to 1; null at the start, and if it follows live traffic."
    )
    compared_until = serializers.DateTimeField(
        allow_null=True, help_text="Ingest time up to which all events are compared."
    )
    events = serializers.IntegerField(help_text="Events compared so far.")
    results = serializers.DictField(
        source="units", child=ShadowResultsOut(), help_text="Messages by destination and result."
    )
    error = serializers.CharField(help_text="Why it waits or failed.")
    why_stopped = serializers.CharField(help_text="Why Penstock stopped it; empty if a person did, or nobody.")


class ShadowDetailOut(ShadowOut):
    """A shadow run with its draft, and the details of the comparison."""

    spec = SpecField()
    field_differences = ShadowFieldOut(many=True, help_text="The most frequent first, by destination.")
    rejected = serializers.DictField(
        child=serializers.IntegerField(), help_text="Messages that only the draft rejects, by cause."
    )
    samples = ShadowSampleOut(many=True, help_text="Up to 5 of each result and destination, the newest first.")
    cost = ShadowCostOut(allow_null=True, help_text="Null while nothing was timed.")


class ShadowPageOut(PageOut):
    """A page of shadow runs, newest first."""

    results = ShadowOut(many=True)


SHADOW_EXAMPLE: Final[dict[str, Any]] = {
    "id": "shadow_01kb0y6q2m8w4s7x5t9c",
    "state": "running",
    "revision": 8,
    "based_on": 8,
    "promoted": None,
    "follow": False,
    "since": "2026-11-27T08:02:41Z",
    "until": "2026-11-27T09:15:04Z",
    "most_events": 10_000,
    "by": "alice",
    "created_at": "2026-11-27T09:15:04Z",
    "started_at": "2026-11-27T09:15:06Z",
    "finished_at": None,
    "share": 0.62,
    "compared_until": "2026-11-27T08:49:10Z",
    "events": 6_200,
    "results": {"crm": {"equal": 5_800, "different": 390, "only_live": 10, "only_draft": 0, "not_sent": 0}},
    "error": "",
    "why_stopped": "",
}
SHADOW_DETAIL_EXAMPLE: Final = SHADOW_EXAMPLE | {
    "spec": {
        "sources": {"shop": {}},
        "normalize": [{"op": "filter", "when": "body.total > 0"}],
        "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/in"}},
    },
    "field_differences": [{"destination": "crm", "path": "total", "count": 390}],
    "rejected": {},
    "samples": [
        {
            "result": "different",
            "destination": "crm",
            "position": "1-3-48210",
            "child": 0,
            "url": "/api/v1/pipes/pipe_01k9fz1m2n3p4q5r6s7t/messages/1-3-48210/",
            "reason": "",
            "fields": [{"path": "total", "live": '"12.50"', "draft": "12.5"}],
        }
    ],
    "cost": {"events": 310, "live_us": 61.2, "draft_us": 66.4},
}
SHADOWS_EXAMPLE: Final = {"next": None, "previous": None, "results": [SHADOW_EXAMPLE]}
