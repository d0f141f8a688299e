"""Bodies of the API's latency figures. Durations are microseconds."""

from typing import Any

from rest_framework import serializers


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


class TimingOut(serializers.Serializer[Any]):
    """Latency of a pipe within a time range."""

    range = serializers.CharField()
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
