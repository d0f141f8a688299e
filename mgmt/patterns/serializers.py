"""Bodies of the API's patterns."""

from typing import Any

from rest_framework import serializers

from mgmt.models import Finding, IgnoredField


class SignalOut(serializers.Serializer[Any]):
    """A signal and its usual range; a field is empty while there is too little history."""

    name = serializers.CharField()
    now = serializers.CharField(help_text="Value in the newest five minutes that were judged.")
    usual = serializers.CharField(help_text="Range that contains eight of ten blocks of five minutes.")
    told = serializers.CharField(
        source="threshold", help_text="Values that become a finding if they occur in two blocks in a row."
    )
    basis = serializers.CharField(help_text="Hours with which the value is compared.")


class FindingOut(serializers.ModelSerializer[Finding]):
    """A finding, reported or silenced because a known event explains it. A pipe has at most one open per kind."""

    class Meta:
        model = Finding
        fields = ["kind", "since", "ended_at", "told_at", "words", "silenced"]
        extra_kwargs = {
            "since": {"help_text": "Start of the first block of five minutes in which it was seen."},
            "told_at": {
                "help_text": "Time at which it had lasted long enough to be reported; null if it was not reported."
            },
            "words": {"help_text": "Newest value and usual range, as text."},
            "silenced": {"help_text": "Known event that explains it; empty if there is none."},
        }


class PatternsOut(serializers.Serializer[Any]):
    """A pipe's signals with their usual ranges, and its findings, newest first."""

    since = serializers.DateTimeField(allow_null=True, help_text="Start of the newest five minutes that were judged.")
    signals = SignalOut(many=True)
    findings = FindingOut(many=True)


class IgnoredFieldIn(serializers.Serializer[Any]):
    """A numeric field to ignore."""

    source = serializers.CharField(max_length=40)  # type: ignore[assignment]  # a field, not DRF's attribute
    field = serializers.CharField(max_length=200, help_text="Path of the field, names joined by dots.")


class IgnoredFieldOut(serializers.ModelSerializer[IgnoredField]):
    """A numeric field whose drift opens no alert."""

    field = serializers.CharField(source="path", help_text="Path of the field, names joined by dots.")
    by = serializers.CharField(source="by.username")

    class Meta:
        model = IgnoredField
        fields = ["id", "source", "field", "by", "at"]
