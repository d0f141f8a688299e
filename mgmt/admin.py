"""The staff's view of all rows: read-mostly. People and cells can be changed; what customers published, and what the
Observer wrote, can only be looked at; nothing that later questions may need can be deleted."""

from typing import Any

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
    Attempt,
    Cell,
    ControlAction,
    DeadLetter,
    Destination,
    Finding,
    Heartbeat,
    Incident,
    Lease,
    Membership,
    Move,
    Notice,
    Pause,
    Pipe,
    PipeRevision,
    ScaleGroup,
    Source,
    SourceSchema,
    Tenant,
    Topic,
    User,
    Verdict,
)


def environment_label(_request: HttpRequest) -> tuple[str, str]:
    """The label at the top of every admin page, red where a mistake costs something."""
    return (settings.PENSTOCK_ENV, "danger" if settings.PRODUCTION else "info")


class KeptAdmin(ModelAdmin):  # type: ignore[misc]  # the package is not followed by mypy
    """Rows that staff may change, but not delete."""

    list_per_page = 50
    show_full_result_count = False

    def has_delete_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        """Never."""
        return False


class ReadOnlyAdmin(KeptAdmin):
    """Rows that staff look at. Writes go through services, on behalf of nobody else."""

    def has_add_permission(self, _request: HttpRequest, *_args: Any) -> bool:
        """Never."""
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        """Never."""
        return False


class MembershipInline(TabularInline):  # type: ignore[misc]
    """Who is in a tenant."""

    model = Membership
    extra = 0
    autocomplete_fields = ["user"]


admin.site.unregister(Group)  # roles are memberships, staff are superusers


@admin.register(User)
class UserAdmin(KeptAdmin, DjangoUserAdmin):  # type: ignore[type-arg]
    """People. Passwords are set by form, never shown."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ["username", "email", "is_active", "is_staff", "last_login"]
    readonly_fields = ["last_login", "date_joined"]


@admin.register(Tenant)
class TenantAdmin(KeptAdmin):
    """Customers and their people."""

    list_display = ["name", "id", "created_at"]
    search_fields = ["name", "id"]
    inlines = [MembershipInline]


@admin.register(Cell)
class CellAdmin(ReadOnlyAdmin):
    """Cells: changed by the control plane."""

    list_display = ["id", "epoch", "version", "lanes", "created_at"]


@admin.register(Topic)
class TopicAdmin(ReadOnlyAdmin):
    """Topics that were made."""

    list_display = ["name", "cell", "purpose", "generation", "partitions", "topic_id"]
    list_filter = ["purpose"]


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnlyAdmin):
    """What runs."""

    list_display = ["writer", "cell", "kind", "epoch", "state", "at"]
    list_filter = ["kind", "state"]


@admin.register(Pipe)
class PipeAdmin(ReadOnlyAdmin):
    """All customers' pipes."""

    list_display = ["name", "id", "tenant", "state", "cell", "version", "created_at"]
    list_select_related = ["tenant", "cell"]
    list_filter = ["state"]
    search_fields = ["name", "id", "tenant__name"]


@admin.register(PipeRevision)
class PipeRevisionAdmin(ReadOnlyAdmin):
    """Published revisions: immutable."""

    list_display = ["pipe", "number", "state", "state_reason", "author", "created_at", "live_at"]
    list_select_related = ["pipe", "author"]
    list_filter = ["state"]
    search_fields = ["pipe__name", "pipe__id"]


@admin.register(Source)
class SourceAdmin(ReadOnlyAdmin):
    """Ways into pipes."""

    list_display = ["name", "pipe", "created_at"]
    list_select_related = ["pipe"]
    search_fields = ["name", "pipe__id"]


@admin.register(SourceSchema)
class SourceSchemaAdmin(ReadOnlyAdmin):
    """What events must look like: immutable."""

    list_display = ["source", "number", "author", "created_at"]
    list_select_related = ["source", "author"]
    search_fields = ["source__pipe__id"]


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """Keys, by prefix; the digest stays out of sight."""

    list_display = ["prefix", "label", "source", "created_at", "revoked_at"]
    list_select_related = ["source"]
    search_fields = ["prefix", "id"]
    exclude = ["digest"]


@admin.register(Destination)
class DestinationAdmin(ReadOnlyAdmin):
    """Destinations, without their secrets."""

    list_display = ["name", "pipe", "state", "version", "created_at"]
    list_select_related = ["pipe"]
    list_filter = ["state"]
    search_fields = ["name", "pipe__id"]
    exclude = ["secrets", "credentials"]


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    """Tries at destinations."""

    list_display = ["at", "pipe_id", "destination", "message_id", "number", "status", "outcome", "reason"]
    list_filter = ["outcome"]
    search_fields = ["pipe_id", "message_id"]


@admin.register(Incident)
class IncidentAdmin(ReadOnlyAdmin):
    """One cause at several tenants: ours to look at."""

    list_display = ["cause", "tenants", "opened_at", "resolved_at"]
    list_filter = ["cause"]


@admin.register(Alert)
class AlertAdmin(ReadOnlyAdmin):
    """What customers were told of."""

    list_display = ["cause", "destination", "pipe", "state", "count", "opened_at", "last_at", "resolved_at"]
    list_select_related = ["pipe"]
    list_filter = ["state", "cause"]
    search_fields = ["id", "pipe__id"]


@admin.register(AlertChannel)
class AlertChannelAdmin(ReadOnlyAdmin):
    """Where customers are told, without the webhooks' secrets."""

    list_display = ["target", "kind", "tenant", "created_at", "confirmed_at"]
    list_select_related = ["tenant"]
    exclude = ["secret"]


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    """What was told, and what could not be."""

    list_display = ["alert", "channel", "what", "state", "tries", "next_at", "error"]
    list_select_related = ["alert", "channel"]
    list_filter = ["state", "what"]


@admin.register(Move)
class MoveAdmin(ReadOnlyAdmin):
    """Releases and redrives; the places they carry stay out of sight."""

    list_display = ["id", "what", "destination", "pipe", "state", "total", "moved", "skipped", "created_at"]
    list_select_related = ["pipe"]
    list_filter = ["what", "state"]
    exclude = ["taken"]


@admin.register(DeadLetter)
class DeadLetterAdmin(ReadOnlyAdmin):
    """Messages that ended."""

    list_display = ["at", "pipe_id", "node", "cause", "message_id", "attempts", "move"]
    list_filter = ["cause"]
    search_fields = ["pipe_id", "message_id"]


@admin.register(Lease)
class LeaseAdmin(ReadOnlyAdmin):
    """Who may change which cell."""

    list_display = ["cell", "holder", "token", "what", "taken_at", "until"]
    list_filter = ["holder"]


@admin.register(Pause)
class PauseAdmin(ReadOnlyAdmin):
    """Who keeps which controller from changing what; ended on the controllers' page."""

    list_display = ["controller", "cell", "reason", "by", "since", "until", "ended_at"]
    list_select_related = ["cell", "by"]
    list_filter = ["controller"]


@admin.register(Verdict)
class VerdictAdmin(ReadOnlyAdmin):
    """How each cell is."""

    list_display = ["cell", "state", "reasons", "since", "at"]
    list_filter = ["state"]


@admin.register(ControlAction)
class ControlActionAdmin(ReadOnlyAdmin):
    """What was done to cells and pipes, and what was refused."""

    list_display = ["at", "controller", "action", "outcome", "cell", "pipe", "reason", "author"]
    list_select_related = ["cell", "pipe", "author"]
    list_filter = ["controller", "outcome"]
    search_fields = ["pipe__id", "cell__id"]


@admin.register(Finding)
class FindingAdmin(ReadOnlyAdmin):
    """What was unusual of pipes."""

    list_display = ["pipe", "kind", "since", "ended_at", "words", "silenced"]
    list_select_related = ["pipe"]
    list_filter = ["kind"]


@admin.register(ScaleGroup)
class ScaleGroupAdmin(ReadOnlyAdmin):
    """What is wanted of each group of lanes; changed on the scaling page."""

    list_display = ["cell", "kind", "minimum", "maximum", "target", "goal_s", "why", "at"]
    list_select_related = ["cell"]
    list_filter = ["kind"]
