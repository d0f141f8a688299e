"""Bodies of the API's usage."""

from typing import Any

from rest_framework import serializers


class AmountOut(serializers.Serializer[Any]):
    """What was taken in, sent, and spent on it."""

    events = serializers.IntegerField(help_text="Accepted at ingest.")
    in_bytes = serializers.IntegerField(help_text="Their bodies.")
    runs = serializers.IntegerField(help_text="Messages that ran through the steps, repeats too.")
    attempts = serializers.IntegerField(help_text="Tries at destinations, failed ones too.")
    out_bytes = serializers.IntegerField(help_text="Bodies that were sent with them.")
    cpu_us = serializers.IntegerField(help_text="CPU of ingest and of all lanes, in microseconds.")
    refused = serializers.IntegerField(
        help_text="Events refused over the tenant's quota; a request that was refused unread counts as one."
    )


class DayOut(serializers.Serializer[Any]):
    """One day of a pipe."""

    day = serializers.DateField(source="about", help_text="In UTC.")
    amount = AmountOut()


class PipeUsageOut(serializers.Serializer[Any]):
    """What a pipe took, day by day, newest first; a day without anything is not listed."""

    total = AmountOut()
    results = DayOut(many=True)


class TenantUsageOut(serializers.Serializer[Any]):
    """One tenant's part."""

    tenant = serializers.CharField(source="about", help_text="Its name; empty for what no pipe's work took.")
    amount = AmountOut()


class GroupUsageOut(serializers.Serializer[Any]):
    """What processes of one kind used in a cell."""

    cell = serializers.CharField(help_text="Empty for ingest, which serves all cells.")
    kind = serializers.CharField()
    cpu_us = serializers.IntegerField()
    idle_us = serializers.IntegerField(help_text="How much of it no pipe's work took.")


class AllUsageOut(serializers.Serializer[Any]):
    """What everybody took."""

    total = AmountOut()
    tenants = TenantUsageOut(many=True)
    groups = GroupUsageOut(many=True)
