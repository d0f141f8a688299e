"""Django admin for staff. User accounts can be changed; all other rows are read-only, because services write them.

No row can be deleted except a second factor, so that the history of each change remains.
"""

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db.models import Model
from django.http import HttpRequest
from unfold.admin import ModelAdmin, TabularInline
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from mgmt.models import (
    Alert,
    AlertChannel,
    ApiKey,
    ApiToken,
    AuditEntry,
    Cell,
    CellVerdict,
    ControlAction,
    DeadLetter,
    DeliveryAttempt,
    Destination,
    Finding,
    Heartbeat,
    IgnoredField,
    Incident,
    Lease,
    Membership,
    Notification,
    Pause,
    Pipe,
    PipeRevision,
    Redrive,
    Replay,
    ScaleGroup,
    ServiceAccount,
    Shadow,
    Source,
    SourceSchema,
    Subject,
    SubjectVersion,
    Tenant,
    Topic,
    User,
)


def environment_label(_request: HttpRequest) -> tuple[str, str]:
    """Return text and colour of the label on every admin page; red ("danger") in production."""
    return (settings.PENSTOCK_ENV, "danger" if settings.PRODUCTION else "info")


class UndeletableAdmin(ModelAdmin):  # type: ignore[misc]  # the package is not followed by mypy
    """Admin of rows that staff may change, but not delete."""

    list_per_page = 50
    show_full_result_count = False

    def has_delete_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        """Return False."""
        return False


class ReadOnlyAdmin(UndeletableAdmin):
    """Admin of rows that staff may only read. Only services write them."""

    def has_add_permission(self, _request: HttpRequest, *_args: Any) -> bool:
        """Return False."""
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        """Return False."""
        return False


class MembershipInline(TabularInline):  # type: ignore[misc]
    """Members of a tenant; owners change them on the members page."""

    model = Membership
    extra = 0
    can_delete = False

    def has_add_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        """Return False."""
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        """Return False."""
        return False


admin.site.unregister(Group)  # roles are memberships, staff are superusers
# django-allauth's own admin permits every change
for _model in (EmailAddress, Authenticator, UserSession, SocialAccount, SocialApp, SocialToken):
    admin.site.unregister(_model)


@admin.register(User)
class UserAdmin(UndeletableAdmin, DjangoUserAdmin):  # type: ignore[type-arg]
    """User accounts. Passwords are set by a form and never shown."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ["username", "email", "is_active", "is_staff", "last_login"]
    readonly_fields = ["last_login", "date_joined"]


@admin.register(EmailAddress)
class EmailAddressAdmin(ReadOnlyAdmin):
    """E-mail addresses of accounts; the user confirms a new one on the account page."""

    list_display = ["email", "user", "verified", "primary"]
    list_select_related = ["user"]
    search_fields = ["email", "user__username"]


@admin.register(Authenticator)
class AuthenticatorAdmin(ReadOnlyAdmin):
    """Second factors, without their secrets. Staff delete those of a user who has lost them."""

    list_display = ["user", "type", "created_at", "last_used_at"]
    list_select_related = ["user"]
    search_fields = ["user__username"]
    exclude = ["data"]

    def has_delete_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        """Return True: there is no other help for a user without their devices and recovery codes."""
        return True


@admin.register(Tenant)
class TenantAdmin(ReadOnlyAdmin):
    """Customers and their members. Staff create a tenant on the console's page, which also invites its owner."""

    list_display = ["name", "id", "created_at"]
    list_before_template = "tenancy/admin_tenants.html"
    search_fields = ["name", "id"]
    inlines = [MembershipInline]


@admin.register(Cell)
class CellAdmin(ReadOnlyAdmin):
    """Cells, which the control plane changes."""

    list_display = ["id", "epoch", "version", "lanes", "created_at"]


@admin.register(Topic)
class TopicAdmin(ReadOnlyAdmin):
    """Kafka topics of cells."""

    list_display = ["name", "cell", "purpose", "generation", "partitions", "topic_id"]
    list_filter = ["purpose"]


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnlyAdmin):
    """Newest heartbeat of each process."""

    list_display = ["writer", "cell", "kind", "epoch", "state", "at"]
    list_filter = ["kind", "state"]


@admin.register(Pipe)
class PipeAdmin(ReadOnlyAdmin):
    """Pipes of all customers."""

    list_display = ["name", "id", "tenant", "state", "cell", "version", "created_at"]
    list_select_related = ["tenant", "cell"]
    list_filter = ["state"]
    search_fields = ["name", "id", "tenant__name"]


@admin.register(PipeRevision)
class PipeRevisionAdmin(ReadOnlyAdmin):
    """Published revisions, which are immutable."""

    list_display = ["pipe", "number", "state", "state_reason", "author", "created_at", "live_at"]
    list_select_related = ["pipe", "author"]
    list_filter = ["state"]
    search_fields = ["pipe__name", "pipe__id"]


@admin.register(Source)
class SourceAdmin(ReadOnlyAdmin):
    """Sources of pipes."""

    list_display = ["name", "pipe", "created_at"]
    list_select_related = ["pipe"]
    search_fields = ["name", "pipe__id"]


@admin.register(SourceSchema)
class SourceSchemaAdmin(ReadOnlyAdmin):
    """Schema versions of sources, which are immutable."""

    list_display = ["source", "number", "author", "created_at"]
    list_select_related = ["source", "author"]
    search_fields = ["source__pipe__id"]


@admin.register(Subject)
class SubjectAdmin(ReadOnlyAdmin):
    """Subjects of the schema registry."""

    list_display = ["name", "tenant", "compatibility", "owner", "created_at", "deprecated_at"]
    list_select_related = ["tenant"]
    search_fields = ["name", "tenant__name"]


@admin.register(SubjectVersion)
class SubjectVersionAdmin(ReadOnlyAdmin):
    """Versions of subjects, which are immutable."""

    list_display = ["subject", "number", "schema", "author", "created_at", "deprecated_at"]
    list_select_related = ["subject", "schema", "author"]
    search_fields = ["subject__name"]


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """API keys by prefix, without their digest."""

    list_display = ["prefix", "label", "source", "created_at", "revoked_at"]
    list_select_related = ["source"]
    search_fields = ["prefix", "id"]
    exclude = ["digest"]


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    """API tokens by prefix, without their digest."""

    list_display = ["prefix", "name", "tenant", "user", "scope", "expires_at", "last_used_at", "revoked_at"]
    list_select_related = ["tenant", "user"]
    search_fields = ["prefix", "id"]
    exclude = ["digest"]


@admin.register(ServiceAccount)
class ServiceAccountAdmin(ReadOnlyAdmin):
    """Service accounts of tenants."""

    list_display = ["name", "tenant", "user", "created_at", "removed_at"]
    list_select_related = ["tenant", "user"]
    search_fields = ["name", "id"]


@admin.register(Destination)
class DestinationAdmin(ReadOnlyAdmin):
    """Destinations, without their secrets."""

    list_display = ["name", "pipe", "state", "version", "created_at"]
    list_select_related = ["pipe"]
    list_filter = ["state"]
    search_fields = ["name", "pipe__id"]
    exclude = ["secrets", "credentials"]


@admin.register(DeliveryAttempt)
class AttemptAdmin(ReadOnlyAdmin):
    """Delivery attempts."""

    list_display = ["at", "pipe_id", "destination", "message_id", "number", "status", "outcome", "reason"]
    list_filter = ["outcome"]
    search_fields = ["pipe_id", "message_id"]


@admin.register(Incident)
class IncidentAdmin(ReadOnlyAdmin):
    """Problems of the platform that staff handle."""

    list_display = ["cause", "tenants", "opened_at", "resolved_at"]
    list_filter = ["cause"]


@admin.register(Alert)
class AlertAdmin(ReadOnlyAdmin):
    """Alerts of customers."""

    list_display = ["cause", "destination", "pipe", "state", "count", "opened_at", "last_at", "resolved_at"]
    list_select_related = ["pipe"]
    list_filter = ["state", "cause"]
    search_fields = ["id", "pipe__id"]


@admin.register(AlertChannel)
class AlertChannelAdmin(ReadOnlyAdmin):
    """Notification channels, without the webhooks' secrets."""

    list_display = ["target", "kind", "tenant", "created_at", "confirmed_at"]
    list_select_related = ["tenant"]
    exclude = ["secret"]


@admin.register(Notification)
class NotificationAdmin(ReadOnlyAdmin):
    """Notifications that are due, sent or failed."""

    list_display = ["alert", "channel", "what", "state", "tries", "next_at", "error"]
    list_select_related = ["alert", "channel"]
    list_filter = ["state", "what"]


@admin.register(Redrive)
class RedriveAdmin(ReadOnlyAdmin):
    """Releases and redrives, without their offset lists."""

    list_display = ["id", "what", "destination", "pipe", "state", "total", "moved", "skipped", "created_at"]
    list_select_related = ["pipe"]
    list_filter = ["what", "state"]
    exclude = ["taken"]


@admin.register(Replay)
class ReplayAdmin(ReadOnlyAdmin):
    """Replays, without the keys and ids that they select."""

    list_display = ["id", "pipe", "revision", "state", "asked", "rehearsal", "by", "created_at", "finished_at"]
    list_select_related = ["pipe", "by"]
    list_filter = ["state", "rehearsal"]
    exclude = ["keys", "ids"]


@admin.register(Shadow)
class ShadowAdmin(ReadOnlyAdmin):
    """Shadow runs, without their samples of customers' values."""

    list_display = ["id", "pipe", "revision", "state", "events", "promoted", "by", "created_at", "finished_at"]
    list_select_related = ["pipe", "by"]
    list_filter = ["state"]
    exclude = ["samples"]


@admin.register(DeadLetter)
class DeadLetterAdmin(ReadOnlyAdmin):
    """Dead letters."""

    list_display = ["at", "pipe_id", "node", "cause", "message_id", "attempts", "move"]
    list_filter = ["cause"]
    search_fields = ["pipe_id", "message_id"]


@admin.register(Lease)
class LeaseAdmin(ReadOnlyAdmin):
    """Leases of controllers on cells."""

    list_display = ["cell", "holder", "token", "what", "taken_at", "until"]
    list_filter = ["holder"]


@admin.register(Pause)
class PauseAdmin(ReadOnlyAdmin):
    """Pauses of controllers; staff end them on the controllers' page."""

    list_display = ["controller", "cell", "reason", "by", "since", "until", "ended_at"]
    list_select_related = ["cell", "by"]
    list_filter = ["controller"]


@admin.register(CellVerdict)
class VerdictAdmin(ReadOnlyAdmin):
    """Verdict on each cell."""

    list_display = ["cell", "state", "reasons", "since", "at"]
    list_filter = ["state"]


@admin.register(ControlAction)
class ControlActionAdmin(ReadOnlyAdmin):
    """Control audit: changes of cells and pipes, and refusals."""

    list_display = ["at", "controller", "action", "outcome", "cell", "pipe", "reason", "author"]
    list_select_related = ["cell", "pipe", "author"]
    list_filter = ["controller", "outcome"]
    search_fields = ["pipe__id", "cell__id"]


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """Audit logs of all customers."""

    list_display = ["at", "tenant", "actor", "action", "target_name", "address"]
    list_select_related = ["tenant"]
    list_filter = ["actor_kind"]
    search_fields = ["tenant__id", "actor", "action"]


@admin.register(Finding)
class FindingAdmin(ReadOnlyAdmin):
    """Findings of unusual behaviour of pipes."""

    list_display = ["pipe", "kind", "since", "ended_at", "words", "silenced"]
    list_select_related = ["pipe"]
    list_filter = ["kind"]


@admin.register(IgnoredField)
class IgnoredFieldAdmin(ReadOnlyAdmin):
    """Numeric fields whose drift opens no alert."""

    list_display = ["pipe", "source", "path", "by", "at"]
    list_select_related = ["pipe", "by"]


@admin.register(ScaleGroup)
class ScaleGroupAdmin(ReadOnlyAdmin):
    """Scaling policies of groups of lanes; staff change them on the scaling page."""

    list_display = ["cell", "kind", "minimum", "maximum", "target", "goal_s", "why", "at"]
    list_select_related = ["cell"]
    list_filter = ["kind"]
