"""What goes into a dry run, and what comes out."""

from typing import Any

from rest_framework import serializers

from dataplane.plan.dryrun import MAX_SHOWN
from mgmt.api.parsing import StrictSerializer
from mgmt.api.shapes import NAME, ROW_ID, SpecField


class DryRunIn(StrictSerializer):
    """A spec and an event."""

    spec = SpecField()
    event = serializers.JSONField(required=False, help_text="The event's body; the pipe's own last one if left out.")
    source = serializers.RegexField(
        NAME,
        required=False,
        help_text="Where it enters; the spec's first if left out.",  # type: ignore[assignment]
    )
    pipe = serializers.RegexField(
        ROW_ID,
        required=False,
        help_text="Whose last event is taken, and whose tenant's salt hashes use.",
    )


class ResultOut(serializers.Serializer[Any]):
    """What a node made of one message."""

    id = serializers.CharField()
    outcome = serializers.ChoiceField(["passed", "filtered", "dead"])
    body = serializers.CharField(help_text="The body on departure, as text.")
    to = serializers.ListField(child=serializers.CharField(), help_text="Where the route sends it.")
    peeked = serializers.ListField(child=serializers.CharField(), help_text="What peek steps would show.")
    cause = serializers.CharField(help_text="Why it ended here: filter, empty, unrouted, step, decode, encode, route.")
    detail = serializers.CharField(help_text="The step or rule, its path, and what was needed.")


class NodeOut(serializers.Serializer[Any]):
    """A node of the pipe."""

    node = serializers.CharField()
    took_us = serializers.IntegerField(help_text="Microseconds.")
    results = ResultOut(many=True)


class OutboundRequestOut(serializers.Serializer[Any]):
    """A request that would be sent; secrets are not shown."""

    destination = serializers.CharField()
    id = serializers.CharField()
    method = serializers.CharField()
    url = serializers.CharField()
    headers = serializers.ListField(child=serializers.CharField())
    body = serializers.CharField()
    note = serializers.CharField(help_text="How the real request differs, if it goes in a batch.")


class DryRunOut(serializers.Serializer[Any]):
    """The whole way of an event."""

    event = serializers.CharField(help_text="The body that was run.")

    nodes = NodeOut(many=True)
    requests = OutboundRequestOut(many=True)
    exploded = serializers.IntegerField(
        help_text=f"How many messages an explode made; at most {MAX_SHOWN} of them are followed."
    )
