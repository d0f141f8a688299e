"""Bodies of the API's replays."""

from typing import Any, Final

from rest_framework import serializers

from mgmt.ledger.serializers import LOSSES_EXAMPLE, TIMING_EXAMPLE, MinuteUnitOut
from mgmt.models import Replay
from mgmt.pipes.serializers import NAME
from mgmt.replays.services.replays import (
    LEAST_RATE_PER_S,
    LONGEST,
    MOST_ID_CHARS,
    MOST_IDS,
    MOST_KEY_CHARS,
    MOST_KEYS,
    MOST_REVISIONS,
    MOST_WHERE_CHARS,
    RATE_PER_S,
)
from mgmt.web.parsers import StrictSerializer
from mgmt.web.serializers import PageOut

SHOWN_IDS: Final = 100


class ReplayIn(StrictSerializer):
    """Replay to start: a range of ingest times, and optionally a selection of its events."""

    since = serializers.DateTimeField(help_text="Ingest time of the first events.")
    until = serializers.DateTimeField(
        help_text=f"Ingest time before which the last events arrived, in the past; at most {LONGEST.days} days later."
    )
    revision = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=2_147_483_647,
        help_text="Number of a published revision, whose steps and routes run. Default: the live one.",
    )
    destinations = serializers.ListField(
        child=serializers.RegexField(NAME),
        required=False,
        max_length=50,
        default=list,
        help_text="Active destinations of the revision, of type `http` or `topic`. Default: all of these.",
    )
    where = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=MOST_WHERE_CHARS,
        default="",
        help_text="Condition over `body` and `meta`, as of a filter step. Default: all events.",
    )
    keys = serializers.ListField(
        child=serializers.CharField(max_length=MOST_KEY_CHARS, trim_whitespace=False),
        required=False,
        max_length=MOST_KEYS,
        default=list,
        help_text="Only events with one of these keys.",
    )
    ids = serializers.ListField(
        child=serializers.CharField(max_length=MOST_ID_CHARS, trim_whitespace=False),
        required=False,
        max_length=MOST_IDS,
        default=list,
        help_text="Only events with one of these message ids (`webhook-id`).",
    )
    revisions = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2_147_483_647),
        required=False,
        max_length=MOST_REVISIONS,
        default=list,
        help_text="Only events accepted under one of these revisions, as of a backfill; the range may then be longer.",
    )
    rate_per_s = serializers.FloatField(
        required=False,
        default=RATE_PER_S,
        min_value=LEAST_RATE_PER_S,
        help_text="Messages per second, at most, over all destinations. Your quota `replay_units_per_s` is the limit.",
    )
    rehearsal = serializers.BooleanField(
        required=False, default=False, help_text="Only count the events and messages, and send nothing."
    )


class ReplayOut(serializers.Serializer[Any]):
    """A replay and its progress."""

    id = serializers.CharField()
    state = serializers.ChoiceField(Replay.State.choices)
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    revision = serializers.IntegerField()
    destinations = serializers.ListField(child=serializers.CharField())
    where = serializers.CharField()
    keys = serializers.ListField(child=serializers.CharField())
    ids = serializers.SerializerMethodField(help_text="The first 100 message ids; `id_count` is the number of all.")
    id_count = serializers.SerializerMethodField()
    rate_per_s = serializers.FloatField()
    rehearsal = serializers.BooleanField()
    revisions = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Only events accepted under these revisions; empty for all.",
    )
    backfill = serializers.CharField(
        source="backfill.destination",
        allow_null=True,
        default=None,
        help_text="Name of the new destination, if it is a backfill; `backfill_id` names the backfill.",
    )
    backfill_id = serializers.CharField(
        source="backfill.id", allow_null=True, default=None, help_text="Id of the backfill, if it is the replay of one."
    )
    repeats = serializers.CharField(
        source="repeats_id", allow_null=True, help_text="Id of the replay whose failed events it repeats."
    )
    by = serializers.CharField(source="by.username", allow_null=True, default=None)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True, help_text="Null while it waits for the cell.")
    finished_at = serializers.DateTimeField(
        allow_null=True, help_text="When all messages were handed to delivery, or when it ended early."
    )
    expected_end = serializers.DateTimeField(
        allow_null=True, help_text="Estimate of `finished_at` from its speed so far; null if it is not running."
    )
    share = serializers.FloatField(allow_null=True, help_text="Read part of the range, 0 to 1; null at the start.")
    asked = serializers.IntegerField(help_text="Events selected so far.")
    units = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="Messages sent so far by destination; in a rehearsal, those that would be sent.",
    )
    filtered = serializers.IntegerField(help_text="Messages that the steps or routes ended on purpose.")
    failed = serializers.IntegerField(help_text="Messages that failed in a step.")
    size_bytes = serializers.IntegerField(help_text="Size of the bodies sent, or that would be sent.")
    error = serializers.CharField(
        help_text="Why it waits or failed, or from when on the log has the events if the first ones have expired."
    )

    def get_ids(self, row: Replay) -> list[str]:
        """Return the first ids: a replay may have ten thousand."""
        return list(row.ids[:SHOWN_IDS])

    def get_id_count(self, row: Replay) -> int:
        """Return the number of ids."""
        return len(row.ids)


class ReplayAccountOut(serializers.Serializer[Any]):
    """Account of a replay: the messages of the selected events by bin."""

    is_final = serializers.BooleanField(
        help_text="True when nothing is queued or waits for a retry, or 24 hours after the end. Then `lost` is final."
    )
    asked = serializers.IntegerField(help_text="Events selected, as the ledger has them.")
    bins = serializers.DictField(child=serializers.IntegerField(), help_text="Messages by bin, over all destinations.")
    destinations = serializers.DictField(
        child=serializers.DictField(child=serializers.IntegerField()),
        help_text="Messages by destination and bin; an empty name has those that ended before one was chosen.",
    )


class ReplayDetailOut(ReplayOut):
    """A replay, its progress and its account."""

    account = ReplayAccountOut()


class ReplayPageOut(PageOut):
    """A page of replays, newest first."""

    results = ReplayOut(many=True)


class BackfillOut(serializers.Serializer[Any]):
    """Earlier events for a new destination: a replay that Penstock starts."""

    id = serializers.CharField()
    destination = serializers.CharField()
    revision = serializers.IntegerField(help_text="Number of the revision that brought the destination.")
    beginning = serializers.CharField(help_text="`from` of the destination in that revision.")
    state = serializers.ChoiceField(
        ["waiting", "cancelled", "not started", *Replay.State.values],
        help_text="`waiting` until the replay is started, then the replay's state. Without a replay it ends as "
        "`cancelled`, by a user, or as `not started`, for the reason.",
    )
    reason = serializers.CharField(help_text="Why it waits, or why it was not started; empty for any other state.")
    created_at = serializers.DateTimeField(help_text="When the revision became live.")
    replay = serializers.CharField(source="replay_id", allow_null=True, help_text="Id of the replay.")


class BackfillPageOut(PageOut):
    """A page of backfills, newest first."""

    results = BackfillOut(many=True)


class ReplayUnitsOut(serializers.Serializer[Any]):
    """Messages of a replay in one bin; `more` counts further ones."""

    bin = serializers.CharField()
    results = MinuteUnitOut(many=True)
    more = serializers.IntegerField()


REPLAY_EXAMPLE: Final[dict[str, Any]] = {
    "id": "replay_01kb0y6q2m8w4s7x5t9c",
    "state": "running",
    "since": "2026-11-26T08:00:00Z",
    "until": "2026-11-26T20:00:00Z",
    "revision": 8,
    "destinations": ["crm"],
    "where": 'body.type == "order.paid"',
    "keys": [],
    "ids": [],
    "id_count": 0,
    "rate_per_s": 50.0,
    "rehearsal": False,
    "revisions": [],
    "backfill": None,
    "backfill_id": None,
    "repeats": None,
    "by": "alice",
    "created_at": "2026-11-27T09:15:04Z",
    "started_at": "2026-11-27T09:15:06Z",
    "finished_at": None,
    "expected_end": "2026-11-27T09:32:40Z",
    "share": 0.25,
    "asked": 12_400,
    "units": {"crm": 12_388},
    "filtered": 12,
    "failed": 0,
    "size_bytes": 8_914_022,
    "error": "",
}
REPLAY_DETAIL_EXAMPLE: Final = REPLAY_EXAMPLE | {
    "account": {
        "is_final": False,
        "asked": 12_400,
        "bins": {"delivered": 12_300, "queued": 82, "retrying": 6, "filtered": 12},
        "destinations": {"crm": {"delivered": 12_300, "queued": 82, "retrying": 6}, "": {"filtered": 12}},
    }
}
BACKFILL_EXAMPLE: Final = {
    "id": "backfill_01kb0y5h8c3n6r9v2q4d",
    "destination": "warehouse",
    "revision": 9,
    "beginning": "earliest",
    "state": "running",
    "reason": "",
    "created_at": "2026-11-27T09:14:00Z",
    "replay": "replay_01kb0y6q2m8w4s7x5t9c",
}
BACKFILLS_EXAMPLE: Final = {"next": None, "previous": None, "results": [BACKFILL_EXAMPLE]}
REPLAYS_EXAMPLE: Final = {"next": None, "previous": None, "results": [REPLAY_EXAMPLE]}
REPLAY_UNITS_EXAMPLE: Final = {
    "bin": "dead",
    "results": [
        {"position": "1-3-48210", "destination": "crm", "child": 0, "last_seen": "", "last_seen_words": ""},
    ],
    "more": 0,
}
REPLAY_LOSSES_EXAMPLE: Final = {name: value for name, value in LOSSES_EXAMPLE.items() if name != "minute"}
REPLAY_TIMING_EXAMPLE: Final = {
    name: value for name, value in TIMING_EXAMPLE.items() if name not in ("range", "series")
}
