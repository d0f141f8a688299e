"""Bodies of the API's audit log."""

from typing import Any

from rest_framework import serializers

from mgmt.audit.presenters import sentence_of
from mgmt.models import AuditEntry
from mgmt.web.serializers import PageOut


class AuditEntryOut(serializers.ModelSerializer[AuditEntry]):
    """One change, with its actor."""

    pipe = serializers.CharField(source="pipe_id", allow_null=True, help_text="Pipe that the target belongs to.")
    sentence = serializers.SerializerMethodField()
    before = serializers.DictField(help_text="Changed fields before the change. Secrets are only said to have changed.")
    after = serializers.DictField(help_text="Changed fields after the change.")

    class Meta:
        model = AuditEntry
        fields = [
            "id",
            "at",
            "sentence",
            "actor_kind",
            "actor",
            "token_id",
            "token_name",
            "address",
            "request_id",
            "action",
            "target_kind",
            "target_id",
            "target_name",
            "pipe",
            "before",
            "after",
        ]
        read_only_fields = fields
        extra_kwargs = {
            "token_id": {"help_text": "Id of the API token; empty for other kinds of actors."},
            "target_name": {"help_text": "Name of the target at that time."},
        }

    def get_sentence(self, row: AuditEntry) -> str:
        """Return the entry in words."""
        return sentence_of(row)


class AuditEntryPageOut(PageOut):
    """A page of the audit log, newest first."""

    results = AuditEntryOut(many=True)


ENTRY_EXAMPLE: dict[str, Any] = {
    "id": "aud_01kqj8x5v7n2m4c9r3t6",
    "at": "2026-11-27T12:00:00Z",
    "sentence": "ann paused pipe orders",
    "actor_kind": "user",
    "actor": "ann",
    "token_id": "",
    "token_name": "",
    "address": "203.0.113.9",
    "request_id": "5f3a0e6c1b2d4f7a9c8e7d6b5a4f3e2d",
    "action": "pipe.paused",
    "target_kind": "pipe",
    "target_id": "pipe_01kqj8x5v7n2m4c9r3t6",
    "target_name": "orders",
    "pipe": "pipe_01kqj8x5v7n2m4c9r3t6",
    "before": {"state": "active"},
    "after": {"state": "paused"},
}
