"""Bodies of the API's comparisons of a draft with the live revision."""

from typing import Any, Final

from rest_framework import serializers

from dataplane.plan.compare import KINDS
from mgmt.pipes.queries.comparison import MOST_EVENTS, MOST_EXAMPLES
from mgmt.pipes.serializers import DiffLineOut, SpecField
from mgmt.web.parsers import StrictSerializer


class ComparisonIn(StrictSerializer):
    """Draft to compare with the live revision."""

    spec = SpecField()


class ComparisonCountsOut(serializers.Serializer[Any]):
    """Compared events by kind; each event has one."""

    same = serializers.IntegerField(help_text="Same destinations and same requests.")
    changed = serializers.IntegerField(
        help_text="Same destinations, another request or body; or rejected by both, for another cause."
    )
    rerouted = serializers.IntegerField(help_text="Other destinations, or none; also another number of messages.")
    rejected = serializers.IntegerField(help_text="Dead in the draft, and not in the live revision.")
    recovered = serializers.IntegerField(help_text="Dead in the live revision, and not in the draft.")


class ComparedExampleOut(serializers.Serializer[Any]):
    """An event that the draft treats differently."""

    kind = serializers.ChoiceField([kind for kind in KINDS if kind != "same"])
    message_id = serializers.CharField()
    position = serializers.CharField()
    url = serializers.CharField(help_text="Path of the message in this API.")
    source = serializers.CharField()  # type: ignore[assignment]  # hides the argument `source` of a field
    ingest_time = serializers.DateTimeField()
    live_to = serializers.ListField(child=serializers.CharField(), help_text="Destinations of the live revision.")
    draft_to = serializers.ListField(child=serializers.CharField(), help_text="Destinations of the draft.")
    reason = serializers.CharField(help_text="Why the draft rejects the event; empty if it does not.")
    lines = DiffLineOut(
        many=True, help_text="Results that differ, of the live revision (`gone`) and the draft (`new`)."
    )
    is_cut = serializers.BooleanField(help_text="True if a body is longer than shown.")


class ComparisonOut(serializers.Serializer[Any]):
    """Comparison of a draft with the live revision on the newest events."""

    live = serializers.IntegerField(help_text="Number of the live revision.")
    found = serializers.IntegerField(help_text=f"Events that were found, at most {MOST_EVENTS}.")
    compared = serializers.IntegerField(help_text="Events that were compared.")
    summary = serializers.CharField()
    counts = ComparisonCountsOut()
    examples = ComparedExampleOut(many=True, help_text=f"Up to {MOST_EXAMPLES} of each kind, newest first.")
    left_out = serializers.ListField(
        child=serializers.CharField(), help_text="Events that were found and not compared, with the reason."
    )
    notes = serializers.ListField(child=serializers.CharField(), help_text="What is not compared.")


COMPARISON_EXAMPLE: Final = {
    "live": 2,
    "found": 100,
    "compared": 100,
    "summary": "97 same, 3 re-routed, 0 rejected",
    "counts": {"same": 97, "changed": 0, "rerouted": 3, "rejected": 0, "recovered": 0},
    "examples": [
        {
            "kind": "rerouted",
            "message_id": "019a8441-6f3c-7d51-8f0a-2b6d5c1f9e77",
            "position": "1-0-7",
            "url": "/api/v1/pipes/pipe_06gy7j9ykg0f7ya2mq4v/messages/1-0-7/",
            "source": "shop",
            "ingest_time": "2025-11-14T21:11:20Z",
            "live_to": ["books", "sales"],
            "draft_to": ["books"],
            "reason": "",
            "lines": [
                {"kind": "gone", "text": "to sales: POST https://sales.example.com/in"},
                {"kind": "gone", "text": "{"},
                {"kind": "gone", "text": '  "total": 1299.9'},
                {"kind": "gone", "text": "}"},
            ],
            "is_cut": False,
        }
    ],
    "left_out": [],
    "notes": ["Delivery is not compared: no request is sent, so responses, retries, order and batches play no role."],
}
