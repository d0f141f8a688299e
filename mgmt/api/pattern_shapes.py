"""Bodies of the API's patterns."""

from typing import Any

from rest_framework import serializers

from mgmt.models import Finding


class SignalOut(serializers.Serializer[Any]):
    """A signal beside what is usual of it; "" where nothing can be said yet."""

    name = serializers.CharField()
    now = serializers.CharField(help_text="In the newest five minutes that were judged.")
    usual = serializers.CharField(help_text="Eight of ten blocks of five minutes lie in it.")
    told = serializers.CharField(help_text="What is told when it is seen twice in a row.")
    basis = serializers.CharField(help_text="Which hours it is compared with.")


class FindingOut(serializers.ModelSerializer[Finding]):
    """Something unusual: told, or silenced because something explains it. A kind is open once at a pipe."""

    class Meta:
        model = Finding
        fields = ["kind", "since", "ended_at", "told_at", "words", "silenced"]


class PatternsOut(serializers.Serializer[Any]):
    """What is usual of a pipe and what was not, the newest first."""

    since = serializers.DateTimeField(allow_null=True, help_text="When the newest judged five minutes began.")
    signals = SignalOut(many=True)
    findings = FindingOut(many=True)
