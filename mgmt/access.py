"""The one way by which tenants' rows reach a request, and the one table of who may do what.

Another tenant's row is not found, exactly as a missing one is not: DoesNotExist, which views turn into 404. A row of
one's own tenant that asks for a higher role is Forbidden, which they turn into 403. The
log's lines of a request name the tenant and the pipe that it got here.
"""

from typing import Final

from django.db.models import F, QuerySet
from structlog.contextvars import bind_contextvars

from mgmt.models import (
    Admission,
    Alert,
    AlertChannel,
    ApiKey,
    DeadLetter,
    Destination,
    DestinationTest,
    LookupTable,
    Membership,
    Move,
    Pipe,
    PipeRevision,
    Ramp,
    Source,
    SourceSchema,
    Tenant,
    User,
)

Role = Membership.Role

# Each role may do all that the ones before it may.
_ORDER: Final = (Role.VIEWER, Role.OPERATOR, Role.EDITOR, Role.OWNER)

# What each deed needs: the API's checks and the console's buttons both ask here.
READ: Final = Role.VIEWER
CREATE_PIPE: Final = Role.EDITOR
RENAME_PIPE: Final = Role.EDITOR
PUBLISH_REVISION: Final = Role.EDITOR
REGISTER_SCHEMA: Final = Role.EDITOR
MAKE_KEY: Final = Role.EDITOR
REVOKE_KEY: Final = Role.EDITOR
ROTATE_SECRET: Final = Role.EDITOR
PAUSE: Final = Role.OPERATOR  # and resume: a pipe or a destination
STEER_RAMP: Final = Role.OPERATOR  # hold, resume, roll back
MOVE_MESSAGES: Final = Role.OPERATOR  # release, redrive, abort
HANDLE_ALERT: Final = Role.OPERATOR  # acknowledge, snooze, resolve, probe
SEND_TEST: Final = Role.EDITOR  # its body is of their choice, and signed as if it were a message
SET_CREDENTIAL: Final = Role.EDITOR
CHANGE_CHANNELS: Final = Role.EDITOR
CHANGE_LOOKUPS: Final = Role.EDITOR  # tables and their rows
CLOSE_PIPE: Final = Role.OWNER
MANAGE_MEMBERS: Final = Role.OWNER


class Forbidden(Exception):  # noqa: N818 named for what the caller answers
    """The user's role in this tenant, which is their own, is too low. `need` and `role` say what was asked and held."""

    def __init__(self, *, need: str, role: str) -> None:
        super().__init__(f"This needs the role {need}, you are {role}. Ask an owner of the tenant for it.")
        self.need = need
        self.role = role


def may(role: str | None, need: str) -> bool:
    """Whether a holder of `role` (None: not a member) may do what needs `need`."""
    return role is not None and _ORDER.index(Role(role)) >= _ORDER.index(Role(need))


def role_in(user: User, tenant_id: str) -> str | None:
    """The user's role in the tenant; None if they are not a member."""
    return Membership.objects.filter(user=user, tenant_id=tenant_id).values_list("role", flat=True).first()


def tenants_of(user: User) -> QuerySet[Tenant]:
    """The user's tenants, by name."""
    return Tenant.objects.filter(memberships__user_id=user.pk).order_by("name", "id")


def pipes_of(user: User) -> QuerySet[Pipe]:
    """The pipes of all the user's tenants, newest first."""
    return Pipe.objects.filter(tenant__memberships__user_id=user.pk).order_by("-created_at", "-id")


def get_tenant(user: User, tenant_id: str, need: str = READ) -> Tenant:
    """A tenant of the user's. Raises Tenant.DoesNotExist, Forbidden."""
    tenant = tenants_of(user).get(id=_storable(tenant_id))
    bind_contextvars(tenant=tenant.id)
    _require(user, tenant.id, need)
    return tenant


def get_pipe(user: User, pipe_id: str, need: str = READ) -> Pipe:
    """A pipe of the user's, with its tenant. Raises Pipe.DoesNotExist, Forbidden."""
    pipe = pipes_of(user).select_related("tenant", "admission__held_by").get(id=_storable(pipe_id))
    bind_contextvars(tenant=pipe.tenant_id, pipe=pipe.id)
    _require(user, pipe.tenant_id, need)
    return pipe


def get_revision(user: User, pipe_id: str, number: int, need: str = READ) -> PipeRevision:
    """A revision of a pipe of the user's. Raises ObjectDoesNotExist, Forbidden."""
    return PipeRevision.objects.select_related("pipe", "author").get(pipe=get_pipe(user, pipe_id, need), number=number)


def get_ramp(user: User, pipe_id: str, number: int, need: str = READ) -> Ramp:
    """The ramp of a revision of a pipe of the user's, as far as it had one. Raises ObjectDoesNotExist, Forbidden."""
    about = ("revision__pipe__tenant", "revision__pipe__admission__held_by", "stable__pipe", "held_by", "ended_by")
    rows = Ramp.objects.select_related(*about)
    return rows.get(revision__pipe=get_pipe(user, pipe_id, need), revision__number=number)


def get_admission(user: User, pipe_id: str, need: str = READ) -> Admission:
    """How a pipe of the user's is let in, if by shares. Raises ObjectDoesNotExist, Forbidden."""
    return get_pipe(user, pipe_id, need).admission


def get_source(user: User, pipe_id: str, name: str, need: str = READ) -> Source:
    """A source of a pipe of the user's. Raises ObjectDoesNotExist, Forbidden."""
    rows = Source.objects.select_related("pipe__tenant", "pipe__admission__held_by")
    return rows.get(pipe=get_pipe(user, pipe_id, need), name=_storable(name))


def get_schema(user: User, pipe_id: str, name: str, number: int, need: str = READ) -> SourceSchema:
    """A version of the schema of a source of a pipe of the user's. Raises ObjectDoesNotExist, Forbidden."""
    source = get_source(user, pipe_id, name, need)
    return SourceSchema.objects.select_related("author").get(source=source, number=number)


def get_key(user: User, pipe_id: str, key_id: str, need: str = READ) -> ApiKey:
    """A key to a pipe of the user's. Raises ObjectDoesNotExist, Forbidden."""
    return ApiKey.objects.select_related("source").get(source__pipe=get_pipe(user, pipe_id, need), id=_storable(key_id))


def get_destination(user: User, pipe_id: str, name: str, need: str = READ) -> Destination:
    """A destination of a pipe of the user's. Raises ObjectDoesNotExist, Forbidden."""
    return Destination.objects.select_related("pipe").get(pipe=get_pipe(user, pipe_id, need), name=_storable(name))


def get_destination_test(user: User, test_id: str, need: str = READ) -> DestinationTest:
    """A test request of a tenant of the user's. Raises DestinationTest.DoesNotExist, Forbidden."""
    mine = DestinationTest.objects.filter(tenant__memberships__user_id=user.pk)
    row = mine.select_related("tenant", "pipe", "by").get(id=_storable(test_id))
    _require(user, row.tenant_id, need)
    return row


def get_letter(user: User, pipe_id: str, number: int, need: str = READ) -> DeadLetter:
    """A dead letter of a pipe of the user's. Raises ObjectDoesNotExist, Forbidden."""
    return DeadLetter.objects.select_related("move").get(pipe_id=get_pipe(user, pipe_id, need).id, id=number)


def get_move(user: User, pipe_id: str, move_id: str, need: str = READ) -> Move:
    """A move in a pipe of the user's. Raises ObjectDoesNotExist, Forbidden."""
    rows = Move.objects.select_related("pipe", "by")
    return rows.get(pipe=get_pipe(user, pipe_id, need), id=_storable(move_id))


def get_alert(user: User, pipe_id: str, alert_id: str, need: str = READ) -> Alert:
    """An alert of a pipe of the user's. Raises ObjectDoesNotExist, Forbidden."""
    rows = Alert.objects.select_related("pipe", "acknowledged_by", "resolved_by")
    return rows.get(pipe=get_pipe(user, pipe_id, need), id=_storable(alert_id))


def get_channel(user: User, tenant_id: str, channel_id: str, need: str = READ) -> AlertChannel:
    """An alert channel of a tenant of the user's. Raises ObjectDoesNotExist, Forbidden."""
    return AlertChannel.objects.get(tenant=get_tenant(user, tenant_id, need), id=_storable(channel_id))


def lookup_tables_of(user: User) -> QuerySet[LookupTable]:
    """The look-up tables of all the user's tenants, newest first."""
    mine = LookupTable.objects.filter(tenant__memberships__user_id=user.pk, state=LookupTable.State.LIVE)
    return mine.order_by("-created_at", "-id")


def get_lookup_table(user: User, table_id: str, need: str = READ) -> LookupTable:
    """A look-up table of the user's. Raises LookupTable.DoesNotExist, Forbidden."""
    table = lookup_tables_of(user).get(id=_storable(table_id))
    _require(user, table.tenant_id, need)
    return table


def with_roles(rows: QuerySet[Pipe]) -> QuerySet[Pipe]:
    """The rows of `pipes_of` with the user's role as `my_role`, in the same query: for lists that draw buttons."""
    return rows.annotate(my_role=F("tenant__memberships__role"))


def _storable(text: str) -> str:
    """The text without U+0000: Postgres cannot even compare it, and no row's id holds U+FFFD either."""
    return text.replace("\x00", "\ufffd")


def _require(user: User, tenant_id: str, need: str) -> None:
    if need == READ:
        return  # whoever found the row is at least a viewer
    role = role_in(user, tenant_id)
    if not may(role, need):
        raise Forbidden(need=need, role=role or "no member")
