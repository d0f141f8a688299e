"""Bodies of the API: attempts, and the counts of messages that were not delivered."""

from typing import Any, Final

from rest_framework import serializers

from dataplane.ledger.bins import Bin
from mgmt.deliveries.queries.attempts import OUTCOMES, AttemptLine
from mgmt.deliveries.queries.slowest import Measure
from mgmt.deliveries.serializers import StandingOut
from mgmt.ledger.serializers import BinsOut
from mgmt.models import OffsetSet
from mgmt.web.serializers import PageOut


class AttemptOut(serializers.Serializer[Any]):
    """One attempt to deliver one message to one destination."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField(help_text="Start of the attempt.")
    message_id = serializers.CharField()
    position = serializers.CharField(help_text="See `GET /pipes/{pipe}/messages/{position}/`.")
    minute = serializers.IntegerField(source="bucket", help_text="Minute in which the message counts.")
    destination = serializers.CharField()
    revision = serializers.IntegerField()
    number = serializers.IntegerField(help_text="1 for the first attempt of the message.")
    outcome = serializers.ChoiceField(
        OUTCOMES, help_text="`retry`: repeated at once by the lane; `parked`: a retry is scheduled."
    )
    status = serializers.IntegerField(help_text="HTTP status; 0 without a response.")
    reason = serializers.CharField(help_text="Cause, and details after a colon; empty if it was delivered.")
    address = serializers.CharField(help_text="IP address of the destination.")
    total_us = serializers.IntegerField(help_text="Duration of the attempt.")
    phases_us = serializers.SerializerMethodField(help_text="Duration of each phase, in order.")
    next_at = serializers.DateTimeField(allow_null=True, help_text="Time of the scheduled retry.")
    gives_up_at = serializers.DateTimeField(allow_null=True, help_text="Time after which no retry is scheduled.")
    answer = serializers.CharField(help_text="Beginning of the response, secrets masked.")

    def get_phases_us(self, line: AttemptLine) -> dict[str, int]:
        """Return the phases by name."""
        return dict(line.split)


class AttemptPageOut(PageOut):
    """A page of attempts, newest first."""

    results = AttemptOut(many=True)


class SlowMessageOut(serializers.Serializer[Any]):
    """One message at one destination, with its duration."""

    position = serializers.CharField(help_text="See `GET /pipes/{pipe}/messages/{position}/`.")
    child = serializers.IntegerField(help_text="Number of the child of an exploded message; 0 for any other.")
    message_id = serializers.CharField()
    minute = serializers.IntegerField(source="bucket", help_text="Minute in which the message counts.")
    destination = serializers.CharField()
    accepted_at = serializers.DateTimeField(allow_null=True, help_text="Time at which ingest accepted the message.")
    attempts = serializers.IntegerField(help_text="Number of its recorded attempts.")
    took_us = serializers.IntegerField(help_text="Duration by `measure`.")
    bin = serializers.CharField(help_text="Where the message is now; empty if it is not counted there yet.")


class SlowestOut(serializers.Serializer[Any]):
    """Slowest messages of a time range."""

    range = serializers.CharField(help_text="Empty if `since` and `until` name the range.")
    stage = serializers.CharField(help_text="Empty for the whole delivery.")
    measure = serializers.ChoiceField(
        [str(name) for name in Measure],
        help_text="`whole`: from the acceptance to the end of the latest recorded attempt; `requests`: sum of the "
        "requests; `between`: time between the attempts.",
    )
    is_cut = serializers.BooleanField(help_text="True if the range has more attempts than were searched.")
    results = SlowMessageOut(many=True)


class UndeliveredCauseOut(serializers.Serializer[Any]):
    """Undelivered messages of one pipe, destination and cause in the last 24 hours."""

    pipe = serializers.CharField(source="fact.pipe_id")
    pipe_name = serializers.CharField(source="fact.pipe_name")
    destination = serializers.CharField(
        source="fact.where", help_text="Empty for messages that ended before a destination was chosen."
    )
    bin = serializers.ChoiceField([str(Bin.DEAD), str(Bin.HELD), str(Bin.RETRYING), str(Bin.LOST)], source="fact.bin")
    cause = serializers.CharField(help_text="Code of the cause; empty if it has no help page.")
    count = serializers.IntegerField(source="fact.count", help_text="Number of messages.")
    since = serializers.DateTimeField(source="fact.since", help_text="Minute of the oldest of them.")
    status = serializers.IntegerField(source="fact.status", help_text="HTTP status of the newest failure; 0 for none.")
    reason = serializers.CharField(source="fact.reason", help_text="Reason of the newest failure.")
    next_at = serializers.DateTimeField(source="fact.next_at", allow_null=True, help_text="Time of the next attempt.")
    needs_you = serializers.BooleanField(
        source="fact.needs_you", help_text="True if nothing more happens automatically."
    )
    summary = serializers.CharField(source="words", help_text="What happened, in words.")
    next_step = serializers.CharField(source="todo", help_text="What to do.")


class UndeliveredOut(serializers.Serializer[Any]):
    """Undelivered messages of the last 24 hours by cause: those that need a person first, then by number."""

    messages = serializers.IntegerField(help_text="Messages of all causes.")
    causes = serializers.IntegerField(help_text="Number of causes, also of those that are not listed.")
    needs_you = serializers.IntegerField(help_text="Number of causes that need a person.")
    since = serializers.DateTimeField(allow_null=True, help_text="Minute of the oldest message.")
    results = UndeliveredCauseOut(many=True)


class WaitingGroupOut(serializers.Serializer[Any]):
    """Dead letters or held messages of one destination and cause that no move has taken."""

    kind = serializers.ChoiceField(OffsetSet.Kind.choices)
    destination = serializers.CharField(help_text="Empty for messages that wait or ended before the route.")
    cause = serializers.CharField(help_text="Empty for held messages.")
    count = serializers.IntegerField()
    oldest = serializers.DateTimeField(help_text="Minute in which the oldest of them became dead or held.")


class WaitingGroupsOut(serializers.Serializer[Any]):
    """Counts of a pipe's dead letters and held messages."""

    dead = serializers.IntegerField()
    held = serializers.IntegerField()
    results = WaitingGroupOut(many=True)


class BreakerOut(serializers.Serializer[Any]):
    """Circuit breaker of a destination: the worst state in any lane."""

    state = serializers.ChoiceField(["closed", "half-open", "open"])
    until = serializers.DateTimeField(allow_null=True, help_text="Time of the first possible probe.")
    reason = serializers.CharField(help_text="Why it is open.")
    slow_lane = serializers.BooleanField(
        source="slow", help_text="True if the slow lane sends to the destination, so that it delays no other."
    )


class RecentStateOut(serializers.Serializer[Any]):
    """Breaker of a destination, and the bins of its messages of a time range."""

    breaker = BreakerOut()
    range = serializers.CharField()
    bins = BinsOut()


class DestinationStateOut(StandingOut, RecentStateOut):
    """Delivery state of a destination with its breaker, and the bins of its messages of a time range."""


ATTEMPTS_EXAMPLE: Final = {
    "next": None,
    "previous": None,
    "results": [
        {
            "id": 4711,
            "at": "2025-11-14T21:11:20Z",
            "message_id": "019a8441-6f3c-7d51-8f0a-2b6d5c1f9e77",
            "position": "1-0-7",
            "minute": 29384711,
            "destination": "crm",
            "revision": 2,
            "number": 1,
            "outcome": "dead",
            "status": 401,
            "reason": "rejected: returned 401",
            "address": "203.0.113.9",
            "total_us": 3100,
            "phases_us": {"connect": 200, "first byte": 2700, "rest": 200},
            "next_at": None,
            "gives_up_at": None,
            "answer": "HTTP/1.1 401 Unauthorized",
        }
    ],
}
SLOWEST_EXAMPLE: Final = {
    "range": "1h",
    "stage": "transmit",
    "measure": "requests",
    "is_cut": False,
    "results": [
        {
            "position": "1-0-7",
            "child": 0,
            "message_id": "019a8441-6f3c-7d51-8f0a-2b6d5c1f9e77",
            "minute": 29384711,
            "destination": "crm",
            "accepted_at": "2025-11-14T21:11:20Z",
            "attempts": 3,
            "took_us": 42000000,
            "bin": "delivered",
        }
    ],
}
UNDELIVERED_EXAMPLE: Final = {
    "messages": 20,
    "causes": 1,
    "needs_you": 1,
    "since": "2025-11-14T21:11:00Z",
    "results": [
        {
            "pipe": "pipe_06gy7j9ykg0f7ya2mq4v",
            "pipe_name": "orders",
            "destination": "crm",
            "bin": "dead",
            "cause": "rejected",
            "count": 20,
            "since": "2025-11-14T21:11:00Z",
            "status": 401,
            "reason": "rejected: returned 401",
            "next_at": None,
            "needs_you": True,
            "summary": "crm: returned 401",
            "next_step": "Fix the request, then redrive.",
        }
    ],
}
WAITING_EXAMPLE: Final = {
    "dead": 20,
    "held": 0,
    "results": [
        {"kind": "dead", "destination": "crm", "cause": "rejected", "count": 20, "oldest": "2025-11-14T21:11:00Z"}
    ],
}
STATE_EXAMPLE: Final = {
    "destination": {
        "name": "crm",
        "state": "suspended",
        "state_cause": "rejected",
        "state_reason": "returned 401",
        "state_since": "2025-11-14T21:11:20Z",
        "config": {"type": "http", "url": "https://crm.example.com/in"},
        "has_credential": True,
        "signing_secrets": 1,
        "created_at": "2025-11-01T08:00:00Z",
    },
    "holds": True,
    "held": 607,
    "held_since": "2025-11-14T21:11:00Z",
    "dead": [{"cause": "rejected", "count": 20, "oldest": "2025-11-14T21:11:00Z"}],
    "moves": [],
    "breaker": {"state": "open", "until": "2025-11-14T21:12:20Z", "reason": "returned 401", "slow_lane": False},
    "range": "1h",
    "bins": {str(name): 0 for name in Bin} | {"delivered": 236, "dead": 20, "held": 607},
}
