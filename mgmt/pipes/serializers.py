"""Bodies of the API: pipes, revisions, sources, keys, destinations and problems. Serializers write no rows."""

from typing import Any, Final

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from mgmt.deliveries.services.destinations import MAX_CREDENTIAL_CHARS
from mgmt.models import Destination as DestinationRow
from mgmt.models import Membership, Pipe, PipeRevision
from mgmt.pipes.services.keys import MAX_KEY_DAYS, MAX_OVERLAP_HOURS, OVERLAP_HOURS
from mgmt.ramps.admission_schedule import MOST_EXPECTED
from mgmt.web.parsers import StrictSerializer
from mgmt.web.serializers import PageOut
from mgmt.web.snippets import endpoint

NAME: Final = r"^[a-z0-9][a-z0-9-]{0,39}$"  # of a source, a destination, a table
ROW_ID: Final = r"^[a-z]{2,6}_[0-9a-z]{20}$"
type_of_spec = {"$ref": "#/components/schemas/PipeSpec"}


@extend_schema_field(type_of_spec)
class SpecField(serializers.DictField):
    """Spec as it was sent; the service checks it with dataplane.spec."""


# -- in


class PipeIn(StrictSerializer):
    """Pipe to create."""

    name = serializers.CharField(max_length=80)
    spec = SpecField()
    tenant = serializers.RegexField(
        r"^[a-z0-9_]{1,32}$", required=False, help_text="Required only for members of several tenants."
    )
    expected_per_s = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=MOST_EXPECTED,
        help_text="Expected events per second. With a high number, only a share of the keys is admitted at first.",
    )


class PipeChangeIn(StrictSerializer):
    """Change of a pipe's name, or of the loss above which you are alerted."""

    name = serializers.CharField(max_length=80, required=False)
    loss_threshold_percent = serializers.FloatField(
        required=False, min_value=0, max_value=99.999, help_text="Loss of a minute in percent; 0: any lost message."
    )


class CredentialIn(StrictSerializer):
    """Secret of a destination's authentication; the required fields depend on its kind."""

    value = serializers.CharField(required=False, max_length=MAX_CREDENTIAL_CHARS, trim_whitespace=False)
    password = serializers.CharField(required=False, max_length=MAX_CREDENTIAL_CHARS, trim_whitespace=False)
    client_secret = serializers.CharField(required=False, max_length=MAX_CREDENTIAL_CHARS, trim_whitespace=False)
    certificate = serializers.CharField(required=False, max_length=MAX_CREDENTIAL_CHARS, help_text="PEM.")
    key = serializers.CharField(required=False, max_length=MAX_CREDENTIAL_CHARS, help_text="PEM.")
    secret_access_key = serializers.CharField(required=False, max_length=MAX_CREDENTIAL_CHARS, trim_whitespace=False)


class RevisionIn(StrictSerializer):
    """Revision to publish."""

    spec = SpecField()
    based_on = serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, help_text="Number of the newest revision that you read."
    )
    credentials = serializers.DictField(
        child=CredentialIn(),
        required=False,
        help_text="Secrets by destination; required where the scheme, host, port, token URL or access key changes.",
    )
    at_once = serializers.BooleanField(
        required=False,
        allow_null=True,
        default=None,
        help_text="True: it takes all keys at once; false: it ramps. By default it takes all keys at once only if "
        "Penstock paused the pipe because the live revision fails.",
    )


class ResumeIn(StrictSerializer):
    """Resumption of a pipe. The body may be empty."""

    without_fix = serializers.BooleanField(
        required=False,
        default=False,
        help_text="True if you corrected the events or a look-up table, so that the live revision works again.",
    )


class KeyIn(StrictSerializer):
    """API key to create."""

    source = serializers.RegexField(NAME)  # type: ignore[assignment]  # a field, not DRF's attribute
    label = serializers.CharField(  # type: ignore[assignment]  # a field, not DRF's attribute
        max_length=80, required=False, allow_blank=True, default=""
    )
    expires_in_days = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=MAX_KEY_DAYS, help_text="Default: never."
    )
    use = serializers.ChoiceField(
        choices=["key", "url"],
        required=False,
        default="key",
        help_text="`url`: the secret part of a URL, for the sender of the source's webhook settings. It cannot be used "
        "as an API key.",
    )


class RotationIn(StrictSerializer):
    """Rotation of an API key. The body may be empty."""

    overlap_hours = serializers.IntegerField(
        required=False,
        default=OVERLAP_HOURS,
        min_value=0,
        max_value=MAX_OVERLAP_HOURS,
        help_text=f"How long the old key still works; 0 ends it at once. Default: {OVERLAP_HOURS}.",
    )
    expires_in_days = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=MAX_KEY_DAYS,
        help_text="Until the new key expires. Default: never.",
    )


# -- out


class PipeOut(serializers.Serializer[Any]):
    """A pipe, and your role in its tenant."""

    id = serializers.CharField()
    name = serializers.CharField()
    tenant = serializers.CharField(source="tenant_id")
    state = serializers.ChoiceField(Pipe.State.choices)
    state_cause = serializers.CharField(
        help_text="Cause for which Penstock paused the pipe; empty if a person paused it."
    )
    state_reason = serializers.CharField(help_text="Description of the cause.")
    cell = serializers.CharField(
        source="cell_id", allow_null=True, help_text="Cell on which the pipe runs; null until it is placed."
    )
    live_revision = serializers.IntegerField(
        allow_null=True, help_text="Number of the revision that processes events now; null if there is none."
    )
    newest_revision = serializers.IntegerField(
        help_text="Number of the newest revision, on which a new one must be based."
    )
    admitted = serializers.IntegerField(
        help_text="Percent of the pipe's keys that are admitted; messages of the other keys are held."
    )
    loss_threshold_percent = serializers.FloatField(
        help_text="Loss of a minute, in percent, above which you are alerted; 0: any lost message."
    )
    my_role = serializers.ChoiceField(Membership.Role.choices)
    created_at = serializers.DateTimeField()


class RevisionOut(serializers.Serializer[Any]):
    """One immutable version of a pipe's spec."""

    number = serializers.IntegerField()
    state = serializers.ChoiceField(PipeRevision.State.choices)
    state_reason = serializers.CharField(help_text="Reason why it waits or failed.")
    at_once = serializers.BooleanField(help_text="True if it takes all keys at once instead of ramping.")
    spec = SpecField()
    author = serializers.CharField(source="author.username", allow_null=True, default=None)
    created_at = serializers.DateTimeField()
    live_at = serializers.DateTimeField(allow_null=True)


class DiffLineOut(serializers.Serializer[Any]):
    """One line of a comparison."""

    kind = serializers.ChoiceField(["same", "gone", "new"])
    text = serializers.CharField(trim_whitespace=False)


class RevisionDiffOut(serializers.Serializer[Any]):
    """Changes of a revision's spec, as lines of JSON."""

    number = serializers.IntegerField()
    against = serializers.IntegerField(allow_null=True, help_text="Revision that it is compared with; null for none.")
    added = serializers.IntegerField(help_text="Number of added lines.")
    removed = serializers.IntegerField(help_text="Number of removed lines.")
    lines = DiffLineOut(many=True)


DIFF_EXAMPLE: Final = {
    "number": 2,
    "against": 1,
    "added": 1,
    "removed": 1,
    "lines": [
        {"kind": "same", "text": "{"},
        {"kind": "gone", "text": '      "url": "https://crm.example.com/in"'},
        {"kind": "new", "text": '      "url": "https://crm.example.com/v2/in"'},
        {"kind": "same", "text": "}"},
    ],
}


class SourceOut(serializers.Serializer[Any]):
    """A source of a pipe."""

    name = serializers.CharField()
    url = serializers.SerializerMethodField(help_text="URL for POST requests with events and a key of this source.")
    created_at = serializers.DateTimeField()

    def get_url(self, _row: Any) -> str:
        """Return the ingest URL, which is the same for all sources: the key identifies the source."""
        return endpoint(settings.PENSTOCK_INGEST_URL)


class KeyOut(serializers.Serializer[Any]):
    """An API key, without the secret key itself."""

    id = serializers.CharField()
    source = serializers.CharField(source="source.name")  # type: ignore[assignment]
    label = serializers.CharField()  # type: ignore[assignment]  # a field, not DRF's attribute
    use = serializers.ChoiceField(
        choices=["key", "url"], help_text="`url`: the secret part of a webhook URL; `key`: an API key."
    )
    prefix = serializers.CharField(help_text="The key's first characters.")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True, help_text="Ingest refuses it from then on; null: never.")
    revoked_at = serializers.DateTimeField(allow_null=True)


class NewKeyOut(KeyOut):
    """A new API key. `key` is returned only here."""

    key = serializers.CharField(help_text="Of `use` `url`, the secret part of the URL.")
    url = serializers.CharField(help_text="URL for the sender; empty for an API key.")


class DestinationOut(serializers.Serializer[Any]):
    """A destination of a pipe, as it is used now."""

    name = serializers.CharField()
    state = serializers.ChoiceField(DestinationRow.State.choices)
    state_cause = serializers.CharField(help_text="Cause of the suspension.")
    state_reason = serializers.CharField(help_text="Description of the response that led to it.")
    state_since = serializers.DateTimeField()
    config = serializers.DictField(help_text="Configuration of the destination in the live spec.")
    has_credential = serializers.SerializerMethodField(help_text="True if the secret for its authentication is stored.")
    signing_secrets = serializers.SerializerMethodField(help_text="Number of secrets that sign each message.")
    created_at = serializers.DateTimeField()

    def get_has_credential(self, row: DestinationRow) -> bool:
        """Return True if a credential is stored; the credential itself is never returned."""
        return bool(row.credential)

    def get_signing_secrets(self, row: DestinationRow) -> int:
        """Return the number of signing secrets; the secrets themselves are never returned."""
        return len(row.secrets)


class NewSecretOut(serializers.Serializer[Any]):
    """A new signing secret. `secret` is returned only here; the previous secret continues to sign as well."""

    destination = DestinationOut()
    secret = serializers.CharField()


class PipePageOut(PageOut):
    """A page of pipes, newest first."""

    results = PipeOut(many=True)


class RevisionPageOut(PageOut):
    """A page of revisions, newest first."""

    results = RevisionOut(many=True)


class KeyPageOut(PageOut):
    """A page of keys, newest first."""

    results = KeyOut(many=True)
