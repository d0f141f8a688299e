"""Bodies of the API's usage."""

from typing import Any, Final

from rest_framework import serializers


class AmountOut(serializers.Serializer[Any]):
    """Events accepted, requests sent, and CPU used for them."""

    events = serializers.IntegerField(help_text="Events accepted at ingest.")
    in_bytes = serializers.IntegerField(help_text="Bytes of the accepted bodies.")
    runs = serializers.IntegerField(help_text="Messages that process lanes ran through the steps, including repeats.")
    attempts = serializers.IntegerField(help_text="Delivery attempts, including failed ones.")
    out_bytes = serializers.IntegerField(help_text="Bytes of the bodies sent in these attempts.")
    cpu_us = serializers.IntegerField(help_text="CPU time of ingest, all lanes and replays, in microseconds.")
    refused = serializers.IntegerField(
        help_text="Events refused because of the tenant's quota; a request refused before it was read counts as one."
    )


class DayOut(serializers.Serializer[Any]):
    """Usage of a pipe on one day."""

    day = serializers.DateField(source="about", help_text="Day in UTC.")
    amount = AmountOut()


class PipeUsageOut(serializers.Serializer[Any]):
    """Usage of a pipe by day, newest first; days without usage are omitted."""

    total = AmountOut()
    results = DayOut(many=True)


class PipeShareOut(serializers.Serializer[Any]):
    """Usage of one pipe of a tenant."""

    pipe = serializers.CharField(source="about.id")
    name = serializers.CharField(source="about.name")
    amount = AmountOut()
    share = serializers.FloatField(allow_null=True, help_text="Share (0 to 1) of the tenant's CPU time.")


class OneTenantUsageOut(serializers.Serializer[Any]):
    """Usage of a tenant's pipes, by day and by pipe."""

    range = serializers.CharField()
    total = AmountOut()
    days = DayOut(many=True, help_text="Newest day first; days without usage are omitted.")
    pipes = PipeShareOut(many=True, help_text="Most CPU time first.")
    more_pipes = serializers.IntegerField(help_text="Number of further pipes that are not listed.")


class TenantUsageOut(serializers.Serializer[Any]):
    """Usage of one tenant."""

    tenant = serializers.CharField(
        source="about", help_text="Name of the tenant; empty for usage that belongs to no pipe."
    )
    amount = AmountOut()


class GroupUsageOut(serializers.Serializer[Any]):
    """CPU time of the processes of one kind in a cell."""

    cell = serializers.CharField(help_text="Empty for ingest, which serves all cells.")
    kind = serializers.CharField()
    cpu_us = serializers.IntegerField()
    idle_us = serializers.IntegerField(help_text="Part of `cpu_us` that belongs to no pipe.")


class AllUsageOut(serializers.Serializer[Any]):
    """Usage of all tenants."""

    total = AmountOut()
    tenants = TenantUsageOut(many=True)
    groups = GroupUsageOut(many=True)


_AMOUNT: Final = {
    "events": 14400,
    "in_bytes": 3686400,
    "runs": 14400,
    "attempts": 14460,
    "out_bytes": 3701760,
    "cpu_us": 21400000,
    "refused": 0,
}
TENANT_USAGE_EXAMPLE: Final = {
    "range": "7d",
    "total": _AMOUNT,
    "days": [{"day": "2025-11-14", "amount": _AMOUNT}],
    "pipes": [{"pipe": "pipe_06gy7j9ykg0f7ya2mq4v", "name": "orders", "amount": _AMOUNT, "share": 1.0}],
    "more_pipes": 0,
}
