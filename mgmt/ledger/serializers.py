"""Bodies of the API's latency figures and of the bins and losses of minutes. Durations are microseconds."""

from collections.abc import Mapping
from typing import Any, Final

from rest_framework import serializers

from dataplane.ledger.bins import Bin
from mgmt.web.serializers import PageOut

MINUTE: Final = "Minutes since 1970-01-01T00:00Z: the minute of the message's event."


class PercentilesOut(serializers.Serializer[Any]):
    """Distribution of lags or durations; every percentile but the maximum is within 1 % of the exact one."""

    p50_us = serializers.IntegerField(source="p50")
    p95_us = serializers.IntegerField(source="p95")
    p99_us = serializers.IntegerField(source="p99")
    max_us = serializers.IntegerField(source="max")
    count = serializers.IntegerField(help_text="Number of messages measured; a repeat counts again.")


class NodeTimingOut(serializers.Serializer[Any]):
    """Lags and process durations at one node, over the messages that left it."""

    node = serializers.CharField()
    lag_in = PercentilesOut(
        allow_null=True,
        help_text="`now - event_time` on arrival; negative if the source's clock is ahead of Penstock's.",
    )
    lag_out = PercentilesOut(allow_null=True, help_text="`now - event_time` on departure.")
    process_duration = PercentilesOut(
        source="own", allow_null=True, help_text="Time from arrival to departure of each message."
    )


class PartOut(serializers.Serializer[Any]):
    """One slice of the time from ingest to the destination's response."""

    name = serializers.CharField()
    mean_us = serializers.IntegerField(help_text="The means of all slices add up to `mean_us` of the whole.")
    p95_us = serializers.IntegerField(
        source="took_us", help_text="Time that the slice adds at the 95th percentile of the whole; these add up to it."
    )
    share = serializers.FloatField(help_text="Share of the whole at its 95th percentile, 0 to 1.")


class SharesOut(serializers.Serializer[Any]):
    """Breakdown of one group of minutes, for a chart over time."""

    minute = serializers.IntegerField(help_text="First minute of the group, as minutes since 1970-01-01T00:00Z.")
    starts = serializers.DateTimeField(help_text="Start of the group.")
    shares = serializers.DictField(
        child=serializers.FloatField(),
        help_text="Share (0 to 1) of each slice at the 95th percentile; empty if nothing was delivered.",
    )


class LatencyOut(serializers.Serializer[Any]):
    """Lags and process durations by node, and the breakdown of the delivery time."""

    nodes = NodeTimingOut(many=True)
    parts = PartOut(
        source="pie",
        many=True,
        help_text="Breakdown of the time of delivered messages into slices, in the order of processing.",
    )
    whole = PercentilesOut(allow_null=True, help_text="Time from ingest to the destination's response.")
    mean_us = serializers.IntegerField(allow_null=True, help_text="Mean of the whole.")
    source_lag = PercentilesOut(
        source="source",
        allow_null=True,
        help_text="Time from `event_time` to ingest, by the source's clock; not part of the whole.",
    )
    end_to_end_us = serializers.IntegerField(
        allow_null=True, help_text="95th percentile of the time from `event_time` to the destination's response."
    )
    skewed = serializers.BooleanField(help_text="True if the clock of a source is ahead of Penstock's.")


class TimingOut(LatencyOut):
    """Latency of a pipe within a time range."""

    range = serializers.CharField()
    series = SharesOut(many=True)


class LagMinuteOut(serializers.Serializer[Any]):
    """Lags and process durations of one minute."""

    minute = serializers.IntegerField(help_text=MINUTE)
    starts = serializers.DateTimeField()
    nodes = NodeTimingOut(many=True)


class LagPageOut(PageOut):
    """A page of minutes with their lags, newest first."""

    results = LagMinuteOut(many=True)


class BinsOut(serializers.Serializer[Any]):
    """Number of messages in each bin; a message counts once for each destination."""

    delivered = serializers.IntegerField(help_text="A destination returned 2xx.")
    filtered = serializers.IntegerField(help_text="Not selected for any destination.")
    duplicate = serializers.IntegerField(help_text="Repeats of an earlier event.")
    dead = serializers.IntegerField(help_text="Failed permanently; they can be redriven.")
    cancelled = serializers.IntegerField(help_text="Their destination was removed before the delivery.")
    held = serializers.IntegerField(help_text="Kept until they are released.")
    retrying = serializers.IntegerField(help_text="Failed, waiting for the next attempt.")
    queued = serializers.IntegerField(help_text="In progress.")
    lost = serializers.IntegerField(help_text="No outcome was recorded although the next node has passed them.")

    def to_representation(self, instance: Mapping[str, int]) -> dict[str, int]:
        """Return all bins: the ledger leaves out empty ones."""
        return {str(name): instance.get(name, 0) for name in Bin}


class DestinationBinsOut(serializers.Serializer[Any]):
    """Bins of one destination."""

    name = serializers.CharField(help_text="Empty for messages that ended before a destination was chosen.")
    bins = BinsOut()


class NodeLossOut(serializers.Serializer[Any]):
    """Loss at one node."""

    node = serializers.CharField()
    due = serializers.IntegerField(help_text="Messages that were to arrive: those that did, and the lost ones.")
    lost = serializers.IntegerField(help_text="Messages lost before or in the node.")
    share = serializers.FloatField(help_text="`lost` / `due`, 0 to 1.")


class LossOut(serializers.Serializer[Any]):
    """Loss by node and end to end. After the route, a message counts once for each of its destinations."""

    due = serializers.IntegerField(help_text="All messages.")
    lost = serializers.IntegerField(help_text="Messages in the bin `lost`.")
    share = serializers.FloatField(help_text="End-to-end loss: `lost` / `due`, 0 to 1.")
    nodes = NodeLossOut(many=True, help_text="In order of travel.")


class MinuteOut(serializers.Serializer[Any]):
    """Account of one minute, as it is now."""

    minute = serializers.IntegerField(help_text=MINUTE)
    starts = serializers.DateTimeField()
    sealed_at = serializers.DateTimeField(
        allow_null=True,
        help_text="Time of the seal, after which loss is final; a retry or a redrive may still change the bins. "
        "Null while messages may still arrive.",
    )
    accepted = serializers.IntegerField(help_text="Events that ingest accepted.")
    unacked = serializers.IntegerField(help_text="Events that were processed although ingest did not accept them.")
    late = serializers.IntegerField(
        help_text="Messages whose outcome changed after the seal, such as by a retry or a redrive."
    )
    bins = BinsOut(help_text="Sum over all destinations, as it is now.")
    bins_at_seal = BinsOut(allow_null=True, help_text="`bins` at the time of the seal; null while the minute is open.")
    destinations = DestinationBinsOut(many=True)
    loss = LossOut()


class MinuteDetailOut(MinuteOut):
    """Account, loss and lags of one minute."""

    nodes = NodeTimingOut(many=True)


class MinutePageOut(PageOut):
    """A page of minutes with messages, newest first."""

    range = serializers.CharField()
    minutes = serializers.IntegerField(help_text="Number of minutes with messages in the whole range.")
    total = MinuteOut(allow_null=True, help_text="Sum over the whole range, by its first minute; null without any.")
    results = MinuteOut(many=True)


class MinuteUnitOut(serializers.Serializer[Any]):
    """One message, or one child of an exploded message, on its path to one destination."""

    position = serializers.CharField(help_text="See `GET /pipes/{pipe}/messages/{position}/`.")
    child = serializers.IntegerField()
    destination = serializers.CharField(help_text="Empty if it ended before a destination was chosen.")
    last_seen = serializers.CharField(help_text="Last node that saw a lost message; empty in other bins.")
    last_seen_words = serializers.CharField(help_text="What happened there, in words; empty if it is not lost.")


class MinuteUnitsOut(serializers.Serializer[Any]):
    """Messages of one minute in one bin."""

    minute = serializers.IntegerField()
    bin = serializers.CharField()
    results = MinuteUnitOut(many=True)
    more = serializers.IntegerField(help_text="Number of further messages that are not listed.")


class LostMessageOut(serializers.Serializer[Any]):
    """One lost message."""

    position = serializers.CharField(help_text="See `GET /pipes/{pipe}/messages/{position}/`.")
    child = serializers.IntegerField(help_text="Number of the message among those that an explode step made.")
    destination = serializers.CharField(help_text="Empty if it was lost before the route.")
    last_seen = serializers.CharField(help_text="Last node that saw the message.")
    last_seen_words = serializers.CharField(help_text="What happened there, in words.")
    seen = serializers.ListField(child=serializers.CharField(), help_text="Nodes that saw it, in order of travel.")


class LossesOut(serializers.Serializer[Any]):
    """Loss by node, and the lost messages."""

    loss = LossOut()
    results = LostMessageOut(many=True)
    next_offset = serializers.IntegerField(
        allow_null=True, help_text="`offset` of the next messages; null after the last message."
    )


class MinuteLossesOut(LossesOut):
    """Loss table of one minute: its lost messages by node."""

    minute = serializers.IntegerField(help_text=MINUTE)


_PERCENTILES: Final = {"p50_us": 2100, "p95_us": 7800, "p99_us": 12050, "max_us": 15200, "count": 240}
_NODE: Final = {
    "node": "transmit:crm",
    "lag_in": _PERCENTILES,
    "lag_out": _PERCENTILES | {"p50_us": 4300, "p95_us": 11900, "p99_us": 18300, "max_us": 20100},
    "process_duration": _PERCENTILES | {"p50_us": 2000, "p95_us": 4100, "p99_us": 6200, "max_us": 7000},
}
_STARTS: Final = {"minute": 29384711, "starts": "2025-11-14T21:11:00Z"}
_BINS: Final = {str(name): 0 for name in Bin} | {"delivered": 236, "dead": 3, "lost": 1}
_LOST: Final = {"lost": 1, "due": 240, "share": 1 / 240}
_LOSS: Final = {
    **_LOST,
    "nodes": [
        {"node": "route", "due": 240, "lost": 0, "share": 0.0},
        {"node": "transform:crm", "due": 240, "lost": 0, "share": 0.0},
        {"node": "transmit:crm", **_LOST},
    ],
}
_MINUTE: Final = {
    **_STARTS,
    "sealed_at": "2025-11-14T21:17:02Z",
    "accepted": 240,
    "unacked": 0,
    "late": 2,
    "bins": _BINS,
    "bins_at_seal": _BINS | {"delivered": 234, "retrying": 2},
    "destinations": [{"name": "crm", "bins": _BINS}],
    "loss": _LOSS,
}
MINUTE_EXAMPLE: Final = _MINUTE | {"nodes": [_NODE]}
_ENDS: Final = {"next": None, "previous": None}
LAG_EXAMPLE: Final = _ENDS | {"results": [_STARTS | {"nodes": [_NODE]}]}
MINUTES_EXAMPLE: Final = _ENDS | {"range": "1h", "minutes": 1, "total": _MINUTE, "results": [_MINUTE]}
_ON_EGRESS: Final = "processed for the destination. The transmit lanes passed its offset without reading it."
UNITS_EXAMPLE: Final = {
    "minute": 29384711,
    "bin": "lost",
    "results": [
        {
            "position": "1-0-7",
            "child": 0,
            "destination": "crm",
            "last_seen": "transform:crm",
            "last_seen_words": _ON_EGRESS,
        }
    ],
    "more": 0,
}
LOSSES_EXAMPLE: Final = {
    "minute": 29384711,
    "loss": _LOSS,
    "results": [
        {
            "position": "1-0-7",
            "child": 0,
            "destination": "crm",
            "last_seen": "transform:crm",
            "last_seen_words": _ON_EGRESS,
            "seen": ["ingest", "normalize", "enrich", "route", "transform:crm"],
        }
    ],
    "next_offset": None,
}
TIMING_EXAMPLE: Final = {
    "range": "1h",
    "nodes": [_NODE],
    "parts": [
        {"name": "ingest", "mean_us": 900, "p95_us": 1400, "share": 0.14},
        {"name": "transmit", "mean_us": 3100, "p95_us": 8600, "share": 0.86},
    ],
    "whole": _PERCENTILES | {"p95_us": 10000},
    "mean_us": 4000,
    "source_lag": _PERCENTILES,
    "end_to_end_us": 11900,
    "skewed": False,
    "series": [_STARTS | {"shares": {"ingest": 0.14, "transmit": 0.86}}],
}
