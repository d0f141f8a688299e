"""What goes in and out: one serializer for each body. Nothing here reads or writes rows by itself."""

from typing import Any, Final

import msgspec
from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from dataplane.spec import PipeSpec
from mgmt.api.parsing import StrictSerializer
from mgmt.models import Destination as DestinationRow
from mgmt.models import Membership, Pipe, PipeRevision
from mgmt.provisioning.admission import MOST_EXPECTED
from mgmt.services.destinations import MAX_CREDENTIAL_CHARS

NAME: Final = r"^[a-z0-9][a-z0-9-]{0,39}$"  # of a source, a destination, a table
ROW_ID: Final = r"^[a-z]{2,6}_[0-9a-z]{20}$"
type_of_spec = {"$ref": "#/components/schemas/PipeSpec"}


@extend_schema_field(type_of_spec)
class SpecField(serializers.DictField):
    """A spec as sent. dataplane.spec checks it, in the service."""


def spec_components() -> dict[str, Any]:
    """The JSON Schemas of the spec's types, from the types themselves."""
    _, components = msgspec.json.schema_components((PipeSpec,), ref_template="#/components/schemas/{name}")
    return components


# -- in


class PipeIn(StrictSerializer):
    """A pipe to be made."""

    name = serializers.CharField(max_length=80)
    spec = SpecField()
    tenant = serializers.RegexField(
        r"^[a-z0-9_]{1,32}$", required=False, help_text="Needed only by members of several tenants."
    )
    expected_per_s = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=MOST_EXPECTED,
        help_text="Events a second that you expect. Of many, only a share of the keys is let in at first.",
    )


class PipeChangeIn(StrictSerializer):
    """What of a pipe can be changed in place."""

    name = serializers.CharField(max_length=80)


class CredentialIn(StrictSerializer):
    """The secret of a destination's auth: the fields that its kind asks for."""

    value = serializers.CharField(required=False, max_length=MAX_CREDENTIAL_CHARS, trim_whitespace=False)
    password = serializers.CharField(required=False, max_length=MAX_CREDENTIAL_CHARS, trim_whitespace=False)
    client_secret = serializers.CharField(required=False, max_length=MAX_CREDENTIAL_CHARS, trim_whitespace=False)
    certificate = serializers.CharField(required=False, max_length=MAX_CREDENTIAL_CHARS, help_text="PEM.")
    key = serializers.CharField(required=False, max_length=MAX_CREDENTIAL_CHARS, help_text="PEM.")


class RevisionIn(StrictSerializer):
    """A revision to be published."""

    spec = SpecField()
    based_on = serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, help_text="The newest revision's number, as you read it."
    )
    credentials = serializers.DictField(
        child=CredentialIn(),
        required=False,
        help_text="By destination, the secret of its auth: needed where scheme, host, port or token URL changes.",
    )


class KeyIn(StrictSerializer):
    """A key to be made."""

    source = serializers.RegexField(NAME)  # type: ignore[assignment]  # a field, not DRF's attribute
    label = serializers.CharField(  # type: ignore[assignment]
        max_length=80, required=False, allow_blank=True, default=""
    )


# -- out


class PipeOut(serializers.Serializer[Any]):
    """A pipe, and your role in its tenant."""

    id = serializers.CharField()
    name = serializers.CharField()
    tenant = serializers.CharField(source="tenant_id")
    state = serializers.ChoiceField(Pipe.State.choices)
    state_cause = serializers.CharField(help_text="Why Penstock itself has paused it; empty if a person did.")
    state_reason = serializers.CharField(help_text="What led to that, in words.")
    cell = serializers.CharField(source="cell_id", allow_null=True, help_text="Where it runs; null until it is placed.")
    live_revision = serializers.IntegerField(allow_null=True, help_text="The number that takes events now.")
    newest_revision = serializers.IntegerField(help_text="What a new revision must be based on.")
    admitted = serializers.IntegerField(help_text="Percent of its keys that are let in; the rest is held.")
    my_role = serializers.ChoiceField(Membership.Role.choices)
    created_at = serializers.DateTimeField()


class RevisionOut(serializers.Serializer[Any]):
    """One immutable version of a pipe's intent."""

    number = serializers.IntegerField()
    state = serializers.ChoiceField(PipeRevision.State.choices)
    state_reason = serializers.CharField(help_text="Why it waits or failed, in words.")
    spec = SpecField()
    author = serializers.CharField(source="author.username", allow_null=True, default=None)
    created_at = serializers.DateTimeField()
    live_at = serializers.DateTimeField(allow_null=True)


class SourceOut(serializers.Serializer[Any]):
    """A way into a pipe."""

    name = serializers.CharField()
    url = serializers.SerializerMethodField(help_text="Where to POST events, with a key of this source.")
    created_at = serializers.DateTimeField()

    def get_url(self, _row: Any) -> str:
        """The same address for all: the key names the source."""
        return f"{settings.PENSTOCK_INGEST_URL}/v1/events"


class KeyOut(serializers.Serializer[Any]):
    """An API key; the key itself is never shown again."""

    id = serializers.CharField()
    source = serializers.CharField(source="source.name")  # type: ignore[assignment]
    label = serializers.CharField()  # type: ignore[assignment]
    prefix = serializers.CharField(help_text="The key's first characters.")
    created_at = serializers.DateTimeField()
    revoked_at = serializers.DateTimeField(allow_null=True)


class NewKeyOut(KeyOut):
    """A key just made. `key` is shown this once."""

    key = serializers.CharField()


class DestinationOut(serializers.Serializer[Any]):
    """Where a pipe delivers to, as it is used now."""

    name = serializers.CharField()
    state = serializers.ChoiceField(DestinationRow.State.choices)
    state_cause = serializers.CharField(help_text="Why it is suspended.")
    state_reason = serializers.CharField(help_text="The answer that led to it, in words.")
    state_since = serializers.DateTimeField()
    config = serializers.DictField(help_text="The live spec's part.")
    has_credential = serializers.SerializerMethodField(help_text="Whether the secret of its auth is stored.")
    signing_secrets = serializers.SerializerMethodField(help_text="How many secrets sign each message.")
    created_at = serializers.DateTimeField()

    def get_has_credential(self, row: DestinationRow) -> bool:
        """Whether there is one, never it."""
        return bool(row.credential)

    def get_signing_secrets(self, row: DestinationRow) -> int:
        """Their number, never they."""
        return len(row.secrets)


class NewSecretOut(serializers.Serializer[Any]):
    """A signing secret just made. `secret` is shown this once; the one before it goes on signing beside it."""

    destination = DestinationOut()
    secret = serializers.CharField()


class TenancyOut(serializers.Serializer[Any]):
    """A tenant of yours."""

    id = serializers.CharField(source="tenant_id")
    name = serializers.CharField(source="tenant.name")
    role = serializers.ChoiceField(Membership.Role.choices)


class MeOut(serializers.Serializer[Any]):
    """Who you are to us."""

    username = serializers.CharField()
    tenants = TenancyOut(many=True)


class FieldErrorOut(serializers.Serializer[Any]):
    """One thing that is wrong: a field by JSON pointer, or a query parameter by name."""

    pointer = serializers.CharField(required=False, help_text="JSON pointer into the body, as a URI fragment.")
    parameter = serializers.CharField(required=False)
    detail = serializers.CharField()
    code = serializers.CharField()


class ProblemOut(serializers.Serializer[Any]):
    """Any error (RFC 9457). `code` is stable; `type` is a page about it."""

    type = serializers.URLField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    instance = serializers.CharField()
    code = serializers.CharField()
    request_id = serializers.CharField()
    errors = FieldErrorOut(many=True)  # type: ignore[assignment]


class ProblemPageOut(serializers.Serializer[Any]):
    """What an error code means."""

    code = serializers.CharField()
    status = serializers.IntegerField()
    title = serializers.CharField()
    meaning = serializers.CharField()


class PageOut(serializers.Serializer[Any]):
    """A page of a list: follow `next` until it is null."""

    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)


class PipePageOut(PageOut):
    """A page of pipes, newest first."""

    results = PipeOut(many=True)


class RevisionPageOut(PageOut):
    """A page of revisions, newest first."""

    results = RevisionOut(many=True)


class KeyPageOut(PageOut):
    """A page of keys, newest first."""

    results = KeyOut(many=True)
