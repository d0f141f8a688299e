"""Bodies of the API's dry runs."""

from typing import Any

from rest_framework import serializers

from dataplane.plan.dryrun import MAX_SHOWN
from mgmt.pipes.serializers import NAME, ROW_ID, SpecField
from mgmt.web.parsers import StrictSerializer


class DryRunIn(StrictSerializer):
    """Spec and event of a dry run."""

    spec = SpecField()
    event = serializers.JSONField(required=False, help_text="Body of the event. Default: the newest event of `pipe`.")
    source = serializers.RegexField(
        NAME,
        required=False,
        help_text="Source at which the event enters. Default: the spec's first source.",  # type: ignore[assignment]
    )
    pipe = serializers.RegexField(
        ROW_ID,
        required=False,
        help_text="Pipe whose newest event is used by default, and whose tenant's salt is used for hashes.",
    )


class ResultOut(serializers.Serializer[Any]):
    """Result of a node for one message."""

    id = serializers.CharField()
    outcome = serializers.ChoiceField(["passed", "filtered", "dead"])
    body = serializers.CharField(help_text="The body on departure, as text.")
    to = serializers.ListField(child=serializers.CharField(), help_text="Destinations that the route chose.")
    peeked = serializers.ListField(
        child=serializers.CharField(),
        help_text="Output of each peek step as `name: body`; a dry run shows it for every message.",
    )
    cause = serializers.CharField(
        help_text="Reason why it ended here: filter, empty, unrouted, step, decode, encode or route."
    )
    detail = serializers.CharField(help_text="The step or rule, its path, and the value that it needs.")


class NodeOut(serializers.Serializer[Any]):
    """Results of one node."""

    node = serializers.CharField()
    took_us = serializers.IntegerField(help_text="Microseconds.")
    results = ResultOut(many=True)


class OutboundRequestOut(serializers.Serializer[Any]):
    """Request that would be sent, without secrets; with a `cause`, the message would be dead-lettered instead."""

    destination = serializers.CharField()
    id = serializers.CharField()
    method = serializers.CharField()
    url = serializers.CharField()
    headers = serializers.ListField(child=serializers.CharField())
    body = serializers.CharField()
    note = serializers.CharField(help_text="How the real request differs if it is sent as part of a batch.")
    cause = serializers.CharField(
        help_text="Why the message would be dead-lettered instead, such as row; empty if it would be sent."
    )


class DryRunOut(serializers.Serializer[Any]):
    """Result of a dry run: each node's output, and the requests."""

    event = serializers.CharField(help_text="Body of the event.")

    nodes = NodeOut(many=True)
    requests = OutboundRequestOut(many=True)
    exploded = serializers.IntegerField(
        help_text=f"Number of messages that an explode step made; at most {MAX_SHOWN} of them are processed further."
    )
