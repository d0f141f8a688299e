"""Bodies of the API's messages: search results and journeys. Durations are microseconds."""

from typing import Any, Final

from rest_framework import serializers

from mgmt.deliveries.attempt_serializers import ATTEMPTS_EXAMPLE, AttemptOut


class FoundMessageOut(serializers.Serializer[Any]):
    """Message that a search has found."""

    pipe = serializers.CharField()
    position = serializers.CharField()
    child = serializers.IntegerField(help_text="Number of the child of an exploded message; 0 for any other.")
    url = serializers.CharField(help_text="Path of the message's journey.")
    message_id = serializers.CharField()
    accepted_at = serializers.DateTimeField(allow_null=True, help_text="Time at which ingest accepted it.")
    minute = serializers.IntegerField(help_text="Minute in which it counts.")
    source = serializers.CharField()  # type: ignore[assignment]  # hides the argument `source` of a field
    revision = serializers.IntegerField(help_text="Revision that processes it.")
    state = serializers.CharField(help_text="State in words, such as `delivered` or `delivered to 1 of 2`.")
    last_seen = serializers.CharField(help_text="Last node that saw it, if it is lost.")
    last_seen_words = serializers.CharField(help_text="What happened there, in words; empty if it is not lost.")


class FoundMessagesOut(serializers.Serializer[Any]):
    """Messages that a search has found, newest first."""

    results = FoundMessageOut(many=True)
    more = serializers.BooleanField(help_text="True if there are messages that are not listed.")


class BodySearchOut(serializers.Serializer[Any]):
    """Events whose body meets a condition: the newest minute first, in a minute by partition."""

    results = FoundMessageOut(many=True)
    searched = serializers.IntegerField(help_text="Events whose body was compared in this request.")
    skipped = serializers.IntegerField(
        help_text="Events that could not be compared: no longer kept, larger than 64 KiB, or masked as a whole."
    )
    total = serializers.IntegerField(help_text="Events of the whole time range.")
    left = serializers.IntegerField(help_text="Events of the range that are not searched yet.")
    cursor = serializers.CharField(allow_null=True, help_text="Continues the search; null if the range is searched.")
    stopped = serializers.CharField(help_text="Why it stopped, apart from the limits of a request; else empty.")


class ArrivalOut(serializers.Serializer[Any]):
    """Arrival of the event at ingest."""

    source = serializers.CharField()  # type: ignore[assignment]  # hides the argument `source` of a field
    event_time = serializers.DateTimeField(source="happened_at", allow_null=True, help_text="By the source's clock.")
    ingest_time = serializers.DateTimeField(source="came_at")
    lag_us = serializers.IntegerField(
        source="age_us", help_text="`ingest_time - event_time`; negative if the source's clock is ahead."
    )
    stored_us = serializers.IntegerField(help_text="Time from `ingest_time` until Kafka had stored it.")
    off_time = serializers.BooleanField(help_text="True if the event time was too far off and is not used.")
    trace = serializers.CharField(help_text="Id of the trace that the event carries; empty if it carries none.")


class StageOut(serializers.Serializer[Any]):
    """Stage, recomputed from the stored event by the revision that processed it."""

    node = serializers.CharField()
    outcome = serializers.CharField(source="result.outcome", help_text="`passed`, `filtered` or `dead`.")
    cause = serializers.CharField(source="result.cause")
    detail = serializers.CharField(source="result.detail")
    before = serializers.CharField(help_text="Body on arrival.")
    after = serializers.CharField(source="result.body", help_text="Body on departure.")
    to = serializers.ListField(
        source="result.to", child=serializers.CharField(), help_text="Destinations that the route chose."
    )
    took_us = serializers.IntegerField(help_text="Duration of this computation, not of the original one.")


class RuleOut(serializers.Serializer[Any]):
    """Routing rule with its result."""

    number = serializers.IntegerField()
    when = serializers.CharField()
    to = serializers.ListField(child=serializers.CharField())
    matched = serializers.BooleanField(source="held", allow_null=True, help_text="Null if it was not evaluated.")


class FactOut(serializers.Serializer[Any]):
    """Statement of the ledger about the message."""

    node = serializers.CharField()
    fact = serializers.CharField()
    detail = serializers.CharField(help_text="Cause of a dead letter, or the number of the retry or hold.")
    at = serializers.DateTimeField(allow_null=True, help_text="Time of its first report; null if it is not known.")


class SentRequestOut(serializers.Serializer[Any]):
    """Request as it is sent, without secrets."""

    method = serializers.CharField()
    url = serializers.CharField()
    headers = serializers.ListField(child=serializers.CharField())
    body = serializers.CharField()
    note = serializers.CharField(help_text="How the sent request differs from this one; empty if it does not.")


class LegOut(serializers.Serializer[Any]):
    """Path of the message to one destination."""

    destination = serializers.CharField()
    bin = serializers.CharField(help_text="One of the bins of a minute; empty if it is not counted there yet.")
    last_seen = serializers.CharField(help_text="Last node that saw it, if it is lost.")
    last_seen_words = serializers.CharField(help_text="What happened there, in words; empty if it is not lost.")
    facts = FactOut(many=True)
    attempts = AttemptOut(many=True)
    transform = StageOut(allow_null=True)
    request = SentRequestOut(allow_null=True)
    dead_letter = serializers.IntegerField(allow_null=True, help_text="Id of its dead letter; null if it has none.")
    to_egress_us = serializers.IntegerField(allow_null=True, help_text="Time from ingest to the end of processing.")
    to_answer_us = serializers.IntegerField(allow_null=True, help_text="Time from there to the response.")
    whole_us = serializers.IntegerField(allow_null=True, help_text="Time from ingest to the response.")


class JourneyOut(serializers.Serializer[Any]):
    """Journey of one message: what it was, what each stage made of it, and where it is now."""

    pipe = serializers.CharField()
    position = serializers.CharField()
    child = serializers.IntegerField()
    children = serializers.IntegerField(help_text="Number of messages that an `explode` step made of it.")
    message_id = serializers.CharField(help_text="Empty if it is not known.")
    minute = serializers.IntegerField(help_text="Minute in which it counts.")
    starts = serializers.DateTimeField(help_text="Start of that minute.")
    revision = serializers.IntegerField(help_text="Revision that processed it; 0 if it is not known.")
    state = serializers.CharField(help_text="State in words, such as `delivered` or `delivered to 1 of 2`.")
    bin = serializers.CharField(
        help_text="Bin of a message that ended, waits or is lost before the route; empty if it passed the route."
    )
    last_seen = serializers.CharField(help_text="Last node that saw it, if it is lost before the route.")
    last_seen_words = serializers.CharField(help_text="What happened there, in words; empty if it is not lost.")
    arrival = ArrivalOut(allow_null=True)
    headers = serializers.DictField(child=serializers.CharField(), help_text="Headers of the event.")
    body = serializers.CharField(allow_null=True, help_text="Body of the event, cut at 64 KiB; null if unavailable.")
    body_bytes = serializers.IntegerField(help_text="Size of the whole body.")
    unavailable = serializers.CharField(
        help_text="Why the event or its stages cannot be shown, for example after the retention time; else empty."
    )
    stages = StageOut(many=True)
    rules = RuleOut(many=True)
    destinations = LegOut(many=True, help_text="Those that need attention first.")
    not_sent_to = serializers.ListField(child=serializers.CharField(), help_text="Destinations that were not chosen.")


FOUND_EXAMPLE: Final = {
    "results": [
        {
            "pipe": "pipe_06gy7j9ykg0f7ya2mq4v",
            "position": "1-0-7",
            "child": 0,
            "url": "/api/v1/pipes/pipe_06gy7j9ykg0f7ya2mq4v/messages/1-0-7/",
            "message_id": "019a8441-6f3c-7d51-8f0a-2b6d5c1f9e77",
            "accepted_at": "2025-11-14T21:11:20Z",
            "minute": 29384711,
            "source": "shop",
            "revision": 2,
            "state": "delivered to 1 of 2",
            "last_seen": "",
            "last_seen_words": "",
        }
    ],
    "more": False,
}
SEARCH_EXAMPLE: Final = {
    "results": FOUND_EXAMPLE["results"],
    "searched": 20_000,
    "skipped": 0,
    "total": 48_210,
    "left": 28_210,
    "cursor": "29384711-1-0-7",
    "stopped": "",
}
_BODY: Final = '{"order": {"id": 4711, "total": 129.9}}'
_STAGE: Final = {
    "node": "normalize",
    "outcome": "passed",
    "cause": "",
    "detail": "",
    "before": _BODY,
    "after": '{"order": {"id": 4711, "amount": 129.9}}',
    "to": [],
    "took_us": 14,
}
JOURNEY_EXAMPLE: Final = {
    "pipe": "pipe_06gy7j9ykg0f7ya2mq4v",
    "position": "1-0-7",
    "child": 0,
    "children": 0,
    "message_id": "019a8441-6f3c-7d51-8f0a-2b6d5c1f9e77",
    "minute": 29384711,
    "starts": "2025-11-14T21:11:00Z",
    "revision": 2,
    "state": "dead",
    "bin": "",
    "last_seen": "",
    "last_seen_words": "",
    "arrival": {
        "source": "shop",
        "event_time": "2025-11-14T21:11:19.960000Z",
        "ingest_time": "2025-11-14T21:11:20Z",
        "lag_us": 40000,
        "stored_us": 3000,
        "off_time": False,
        "trace": "",
    },
    "headers": {"content-type": "application/json"},
    "body": _BODY,
    "body_bytes": 39,
    "unavailable": "",
    "stages": [_STAGE, _STAGE | {"node": "route", "to": ["crm"]}],
    "rules": [{"number": 1, "when": "body.order.amount > 100", "to": ["crm"], "matched": True}],
    "destinations": [
        {
            "destination": "crm",
            "bin": "dead",
            "last_seen": "",
            "last_seen_words": "",
            "facts": [{"node": "transmit:crm", "fact": "dead", "detail": "rejected", "at": None}],
            "attempts": ATTEMPTS_EXAMPLE["results"],
            "transform": None,
            "request": {
                "method": "POST",
                "url": "https://crm.example.com/in",
                "headers": ["content-type: application/json"],
                "body": _STAGE["after"],
                "note": "",
            },
            "dead_letter": 12,
            "to_egress_us": 5200,
            "to_answer_us": None,
            "whole_us": None,
        }
    ],
    "not_sent_to": [],
}
