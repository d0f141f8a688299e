"""Access control: the only path by which tenants' rows reach a request, and the only table of required roles.

Another tenant's row raises DoesNotExist, exactly as a missing row does; views answer 404. A row of the user's own
tenant that needs a higher role raises Forbidden; views answer 403. The getters bind the tenant and the pipe to the
log context, so that each log line of the request names them.

The grant of an API token (`User.grant`) is enforced here, too. Rows of the user's other tenants are missing, and the
role is that of the grant. If the grant names a pipe, all other pipes and rows that belong to no pipe are missing, and
the tenant's own routes raise OutsidePipe.

A session that began by single sign-on (`User.sso_connection_id`) reaches the tenant of that connection only: its
identity provider speaks for no other tenant. Without single sign-on, tenants that require it are missing, except to
their owners.
"""

from typing import Final, TypeVar

from django.db.models import F, Model, Q, QuerySet, Value
from structlog.contextvars import bind_contextvars

from mgmt.ids import storable
from mgmt.models import (
    Admission,
    Alert,
    AlertChannel,
    ApiKey,
    ApiToken,
    Backfill,
    CatalogueLink,
    DeadLetter,
    Destination,
    DestinationTest,
    IgnoredField,
    Invitation,
    LookupTable,
    Membership,
    Pipe,
    PipeRevision,
    Ramp,
    Redrive,
    Rejection,
    Replay,
    SchemaText,
    ServiceAccount,
    Shadow,
    Source,
    SourceSchema,
    SsoConnection,
    SsoDomain,
    Subject,
    SubjectVersion,
    Tenant,
    User,
)
from mgmt.tenancy.queries import members_of
from mgmt.tenancy.roles import includes
from mgmt.tokens.models import SCOPE_OF_ROLE
from mgmt.tokens.queries import service_accounts_of

Role = Membership.Role
_Row = TypeVar("_Row", bound=Model)

# The role that each action needs. Both the API's checks and the console's buttons use these constants.
READ: Final = Role.VIEWER
CREATE_PIPE: Final = Role.EDITOR
RENAME_PIPE: Final = Role.EDITOR
PUBLISH_REVISION: Final = Role.EDITOR  # also rehearse a draft, and promote it
REGISTER_SCHEMA: Final = Role.EDITOR
CHANGE_SUBJECT: Final = Role.EDITOR  # level, owner and deprecation of a subject; the default level
SET_EVENT_TYPES: Final = Role.EDITOR
SET_WEBHOOK: Final = Role.EDITOR
MAKE_KEY: Final = Role.EDITOR  # also rotate
REVOKE_KEY: Final = Role.EDITOR
ROTATE_SECRET: Final = Role.EDITOR
PAUSE: Final = Role.OPERATOR  # also resume; of a pipe or a destination
STEER_RAMP: Final = Role.OPERATOR  # hold, resume, roll back
MOVE_MESSAGES: Final = Role.OPERATOR  # release, redrive, replay, abort; stop a shadow run
HANDLE_ALERT: Final = Role.OPERATOR  # acknowledge, snooze, resolve, probe; ignore a field
SEND_TEST: Final = Role.EDITOR  # the user chooses the body, and it is signed like a message
SET_CREDENTIAL: Final = Role.EDITOR
CHANGE_CHANNELS: Final = Role.EDITOR
CHANGE_LOOKUPS: Final = Role.EDITOR  # tables and their rows
CLOSE_PIPE: Final = Role.OWNER
SHARE_CATALOGUE: Final = Role.OWNER  # with people outside the tenant
SHARE_PORTAL: Final = Role.OPERATOR  # links that permit edits need EDITOR; also revoke
MANAGE_PORTAL: Final = Role.OWNER  # the sites that may embed it
MAKE_TOKEN: Final = Role.VIEWER  # of one's own, up to one's own role; with a token it needs MANAGE_TOKENS
MANAGE_TOKENS: Final = Role.OWNER  # also of other users; service accounts
READ_AUDIT: Final = Role.OWNER  # entries name members and their addresses
MANAGE_MEMBERS: Final = Role.OWNER  # invite, change roles, remove
MANAGE_SSO: Final = Role.OWNER  # also read: the settings name the identity provider


class Forbidden(Exception):  # noqa: N818 named for what the caller answers
    """The user is a member of the tenant, but their role is too low. `need`: the required role; `role`: theirs."""

    code = "role-too-low"

    def __init__(self, *, need: str, role: str) -> None:
        super().__init__(f"This needs the role {need}; you are {role}. Ask an owner of the tenant for the role.")
        self.need = need
        self.role = role


class ScopeTooLow(Forbidden):
    """The API token, or its user's role, allows too little."""

    code = "scope-too-low"

    def __init__(self, *, need: str, role: str) -> None:
        super().__init__(need=need, role=role)
        scope, has = SCOPE_OF_ROLE[Role(need)], SCOPE_OF_ROLE[Role(role)]
        text = f"This needs a token with the scope {scope} of a user with the role {need}; this token allows {has}."
        self.args = (text,)


class OutsidePipe(Forbidden):
    """The API token reaches one pipe only, and the request is for the tenant."""

    code = "token-of-one-pipe"

    def __init__(self, *, need: str, role: str) -> None:
        super().__init__(need=need, role=role)
        self.args = ("This token reaches one pipe only. Use a token of the whole tenant.",)


def may(role: str | None, need: str) -> bool:
    """Return True if `role` (None: not a member) includes the role `need`."""
    return role is not None and includes(role, need)


def role_in(user: User, tenant_id: str) -> str | None:
    """Return the user's role in the tenant; None if they are not a member, or their token is of another tenant."""
    if user.grant is not None:
        return user.grant.role if user.grant.tenant_id == tenant_id else None
    rows = Membership.objects.filter(user=user, tenant_id=tenant_id, tenant__in=tenants_of(user))
    return rows.values_list("role", flat=True).first()


def tenants_of(user: User) -> QuerySet[Tenant]:
    """Return the tenants that the user's request reaches, ordered by name; with a token, only its own."""
    return Tenant.objects.filter(_reached(user, "")).order_by("name", "id")


def tenants_behind_sso(user: User) -> QuerySet[Tenant]:
    """Return the user's tenants that require single sign-on and are therefore missing from `tenants_of`."""
    rows = Tenant.objects.filter(memberships__user_id=user.pk, require_sso=True)
    return rows.exclude(id__in=tenants_of(user).values("id")).order_by("name", "id")


def memberships_of(user: User) -> list[Membership]:
    """Return the user's memberships with their tenants, by name; with a token, only one, with the role of its grant."""
    rows = Membership.objects.filter(user=user, tenant__in=tenants_of(user)).select_related("tenant")
    found = list(rows.order_by("tenant__name", "id"))
    for membership in found:
        membership.role = user.grant.role if user.grant else membership.role
    return found


def pipes_of(user: User) -> QuerySet[Pipe]:
    """Return the pipes of all the user's tenants, newest first; with a token, only those that it reaches."""
    rows = Pipe.objects.filter(_reached(user, "tenant__")).order_by("-created_at", "-id")
    return rows.filter(id=user.grant.pipe_id) if user.grant and user.grant.pipe_id else rows


def _reached(user: User, tenant: str) -> Q:
    """Return the condition that a row's tenant is one that the request reaches; `tenant`: path from the row to it."""
    member = Q(**{f"{tenant}memberships__user_id": user.pk})
    if user.grant:
        return member & Q(**{f"{tenant}id": user.grant.tenant_id})
    if user.sso_connection_id:
        connection = f"{tenant}sso_connection"
        return member & Q(**{f"{connection}__id": user.sso_connection_id, f"{connection}__enabled": True})
    return member & (Q(**{f"{tenant}require_sso": False}) | Q(**{f"{tenant}memberships__role": Role.OWNER}))


def get_tenant(user: User, tenant_id: str, need: str = READ) -> Tenant:
    """Return one of the user's tenants. Raises Tenant.DoesNotExist, Forbidden; OutsidePipe for a token of one pipe."""
    tenant = tenants_of(user).get(id=storable(tenant_id))
    bind_contextvars(tenant=tenant.id)
    if user.grant and user.grant.pipe_id:
        raise OutsidePipe(need=need, role=user.grant.role)
    _require(user, tenant.id, need)
    return tenant


def get_pipe(user: User, pipe_id: str, need: str = READ) -> Pipe:
    """Return one of the user's pipes, with its tenant. Raises Pipe.DoesNotExist, Forbidden."""
    pipe = pipes_of(user).select_related("tenant", "admission__held_by").get(id=storable(pipe_id))
    bind_contextvars(tenant=pipe.tenant_id, pipe=pipe.id)
    _require(user, pipe.tenant_id, need)
    return pipe


def get_revision(user: User, pipe_id: str, number: int, need: str = READ) -> PipeRevision:
    """Return a revision of one of the user's pipes. Raises ObjectDoesNotExist, Forbidden."""
    return PipeRevision.objects.select_related("pipe", "author").get(pipe=get_pipe(user, pipe_id, need), number=number)


def get_ramp(user: User, pipe_id: str, number: int, need: str = READ) -> Ramp:
    """Return the ramp of a revision. Raises ObjectDoesNotExist, also for a revision without a ramp; Forbidden."""
    about = ("revision__pipe__tenant", "revision__pipe__admission__held_by", "stable__pipe", "held_by", "ended_by")
    rows = Ramp.objects.select_related(*about)
    return rows.get(revision__pipe=get_pipe(user, pipe_id, need), revision__number=number)


def get_admission(user: User, pipe_id: str, need: str = READ) -> Admission:
    """Return the admission of a pipe. Raises ObjectDoesNotExist, also for a pipe without an admission; Forbidden."""
    return get_pipe(user, pipe_id, need).admission


def get_source(user: User, pipe_id: str, name: str, need: str = READ) -> Source:
    """Return a source of one of the user's pipes. Raises ObjectDoesNotExist, Forbidden."""
    rows = Source.objects.select_related("pipe__tenant", "pipe__admission__held_by")
    return rows.get(pipe=get_pipe(user, pipe_id, need), name=storable(name))


def get_schema(user: User, pipe_id: str, name: str, number: int, need: str = READ) -> SourceSchema:
    """Return one version of the schema of a source. Raises ObjectDoesNotExist, Forbidden."""
    source = get_source(user, pipe_id, name, need)
    return SourceSchema.objects.select_related("author").get(source=source, number=number)


def get_key(user: User, pipe_id: str, key_id: str, need: str = READ) -> ApiKey:
    """Return an API key of one of the user's pipes. Raises ObjectDoesNotExist, Forbidden."""
    return ApiKey.objects.select_related("source").get(source__pipe=get_pipe(user, pipe_id, need), id=storable(key_id))


def get_destination(user: User, pipe_id: str, name: str, need: str = READ) -> Destination:
    """Return a destination of one of the user's pipes. Raises ObjectDoesNotExist, Forbidden."""
    return Destination.objects.select_related("pipe").get(pipe=get_pipe(user, pipe_id, need), name=storable(name))


def get_destination_test(user: User, test_id: str, need: str = READ) -> DestinationTest:
    """Return a test request of one of the user's tenants. Raises DestinationTest.DoesNotExist, Forbidden."""
    mine = DestinationTest.objects.filter(tenant__in=tenants_of(user))
    mine = mine.filter(pipe=user.grant.pipe_id) if user.grant and user.grant.pipe_id else mine
    row = mine.select_related("tenant", "pipe", "by").get(id=storable(test_id))
    _require(user, row.tenant_id, need)
    return row


def get_dead_letter(user: User, pipe_id: str, number: int, need: str = READ) -> DeadLetter:
    """Return a dead letter of one of the user's pipes. Raises ObjectDoesNotExist, Forbidden."""
    return DeadLetter.objects.select_related("move").get(pipe_id=get_pipe(user, pipe_id, need).id, id=number)


def get_rejection(user: User, pipe_id: str, number: int, need: str = READ) -> Rejection:
    """Return a kind of rejected events of one of the user's pipes. Raises ObjectDoesNotExist, Forbidden."""
    return Rejection.objects.select_related("pipe__tenant").get(pipe=get_pipe(user, pipe_id, need), id=number)


def get_redrive(user: User, pipe_id: str, move_id: str, need: str = READ) -> Redrive:
    """Return a release or redrive of one of the user's pipes. Raises ObjectDoesNotExist, Forbidden."""
    rows = Redrive.objects.select_related("pipe", "by")
    return rows.get(pipe=get_pipe(user, pipe_id, need), id=storable(move_id))


def get_replay(user: User, pipe_id: str, replay_id: str, need: str = READ) -> Replay:
    """Return a replay of one of the user's pipes. Raises ObjectDoesNotExist, Forbidden."""
    rows = Replay.objects.select_related("pipe", "by", "backfill")
    return rows.get(pipe=get_pipe(user, pipe_id, need), id=storable(replay_id))


def get_backfill(user: User, pipe_id: str, backfill_id: str, need: str = READ) -> Backfill:
    """Return a backfill of one of the user's pipes. Raises ObjectDoesNotExist, Forbidden."""
    rows = Backfill.objects.select_related("pipe", "replay")
    return rows.get(pipe=get_pipe(user, pipe_id, need), id=storable(backfill_id))


def get_shadow(user: User, pipe_id: str, shadow_id: str, need: str = READ) -> Shadow:
    """Return a shadow run of one of the user's pipes. Raises ObjectDoesNotExist, Forbidden."""
    rows = Shadow.objects.select_related("pipe", "by")
    return rows.get(pipe=get_pipe(user, pipe_id, need), id=storable(shadow_id))


def get_alert(user: User, pipe_id: str, alert_id: str, need: str = READ) -> Alert:
    """Return an alert of one of the user's pipes. Raises ObjectDoesNotExist, Forbidden."""
    rows = Alert.objects.select_related("pipe", "acknowledged_by", "resolved_by")
    return rows.get(pipe=get_pipe(user, pipe_id, need), id=storable(alert_id))


def get_ignored_field(user: User, pipe_id: str, ignored_id: str, need: str = READ) -> IgnoredField:
    """Return an ignored field of one of the user's pipes. Raises ObjectDoesNotExist, Forbidden."""
    return IgnoredField.objects.get(pipe=get_pipe(user, pipe_id, need), id=storable(ignored_id))


def get_channel(user: User, tenant_id: str, channel_id: str, need: str = READ) -> AlertChannel:
    """Return a notification channel of one of the user's tenants. Raises ObjectDoesNotExist, Forbidden."""
    return AlertChannel.objects.get(tenant=get_tenant(user, tenant_id, need), id=storable(channel_id))


def get_member(user: User, tenant_id: str, username: str, need: str = READ) -> Membership:
    """Return a membership of one of the user's tenants, by user name. Raises ObjectDoesNotExist, Forbidden."""
    rows = members_of(get_tenant(user, tenant_id, need).id).select_related("tenant")
    return rows.get(user__username=storable(username))


def get_invitation(user: User, tenant_id: str, invitation_id: str, need: str = READ) -> Invitation:
    """Return an invitation to one of the user's tenants. Raises ObjectDoesNotExist, Forbidden."""
    rows = Invitation.objects.select_related("tenant", "invited_by")
    return rows.get(tenant=get_tenant(user, tenant_id, need), id=storable(invitation_id))


def get_sso_connection(user: User, tenant_id: str, need: str = READ) -> SsoConnection:
    """Return the single sign-on of one of the user's tenants. Raises ObjectDoesNotExist, Forbidden."""
    rows = SsoConnection.objects.select_related("tenant")
    return rows.get(tenant=get_tenant(user, tenant_id, need))


def get_sso_domain(user: User, tenant_id: str, domain: str, need: str = READ) -> SsoDomain:
    """Return an e-mail domain of one of the user's tenants. Raises ObjectDoesNotExist, Forbidden."""
    return SsoDomain.objects.get(tenant=get_tenant(user, tenant_id, need), domain=storable(domain))


def get_catalogue_link(user: User, tenant_id: str, link_id: str, need: str = READ) -> CatalogueLink:
    """Return a catalogue link of one of the user's tenants. Raises ObjectDoesNotExist, Forbidden."""
    return CatalogueLink.objects.get(tenant=get_tenant(user, tenant_id, need), id=storable(link_id))


def lookup_tables_of(user: User) -> QuerySet[LookupTable]:
    """Return the live look-up tables of all the user's tenants, newest first."""
    mine = _tenant_wide(user, LookupTable.objects.filter(tenant__in=tenants_of(user), state=LookupTable.State.LIVE))
    return mine.order_by("-created_at", "-id")


def get_lookup_table(user: User, table_id: str, need: str = READ) -> LookupTable:
    """Return a live look-up table of one of the user's tenants. Raises LookupTable.DoesNotExist, Forbidden."""
    table = lookup_tables_of(user).get(id=storable(table_id))
    _require(user, table.tenant_id, need)
    return table


def subjects_of(user: User) -> QuerySet[Subject]:
    """Return the subjects of all the user's tenants, newest first."""
    rows = _tenant_wide(user, Subject.objects.filter(tenant__in=tenants_of(user)))
    return rows.order_by("-created_at", "-id")


def get_subject(user: User, subject_id: str, need: str = READ) -> Subject:
    """Return a subject of one of the user's tenants. Raises Subject.DoesNotExist, Forbidden."""
    subject = subjects_of(user).select_related("tenant").get(id=storable(subject_id))
    bind_contextvars(tenant=subject.tenant_id)
    _require(user, subject.tenant_id, need)
    return subject


def get_subject_version(user: User, subject_id: str, number: int, need: str = READ) -> SubjectVersion:
    """Return one version of a subject. Raises ObjectDoesNotExist, Forbidden."""
    rows = SubjectVersion.objects.select_related("schema", "author", "subject")
    return rows.get(subject=get_subject(user, subject_id, need), number=number)


def schema_texts_of(user: User) -> QuerySet[SchemaText]:
    """Return the schemas of all the user's tenants, newest first."""
    return _tenant_wide(user, SchemaText.objects.filter(tenant__in=tenants_of(user))).order_by("-id")


def tokens_of(user: User, tenant: Tenant) -> QuerySet[ApiToken]:
    """Return the API tokens of a tenant that the user may see, newest first: their own, for owners all."""
    rows = ApiToken.objects.filter(tenant=tenant).order_by("-created_at", "-id")
    rows = rows if may(role_in(user, tenant.id), MANAGE_TOKENS) else rows.filter(user=user)
    return rows.select_related("user__service_account", "pipe", "created_by")


def get_token(user: User, tenant_id: str, token_id: str) -> ApiToken:
    """Return an API token that the user may see. Raises ObjectDoesNotExist."""
    return tokens_of(user, get_tenant(user, tenant_id)).get(id=storable(token_id))


def get_token_to_revoke(user: User, tenant_id: str, token_id: str) -> ApiToken:
    """Return a token that the user may revoke. A request by token may revoke that one, else it needs MANAGE_TOKENS.

    Raises ObjectDoesNotExist, Forbidden.
    """
    token = get_token(user, tenant_id, token_id)
    if user.grant is not None and user.grant.token_id != token.id:
        _require(user, tenant_id, MANAGE_TOKENS)
    return token


def need_to_create_token(user: User) -> Role:
    """Return the role that creating a token needs: a higher one by token, so that no token makes copies of itself."""
    return MAKE_TOKEN if user.grant is None else MANAGE_TOKENS


def get_service_account(user: User, tenant_id: str, account_id: str, need: str = READ) -> ServiceAccount:
    """Return a service account of one of the user's tenants. Raises ObjectDoesNotExist, Forbidden."""
    return service_accounts_of(get_tenant(user, tenant_id, need).id).get(id=storable(account_id))


def with_roles(user: User, rows: QuerySet[Pipe]) -> QuerySet[Pipe]:
    """Annotate the rows of `pipes_of` with the user's role as `my_role`, in the same query: for lists with buttons."""
    return rows.annotate(my_role=Value(user.grant.role) if user.grant else F("tenant__memberships__role"))


def _tenant_wide(user: User, rows: QuerySet[_Row]) -> QuerySet[_Row]:
    """Return rows that belong to no pipe: none for a token of one pipe."""
    return rows.none() if user.grant and user.grant.pipe_id else rows


def _require(user: User, tenant_id: str, need: str) -> None:
    if need == READ:
        return  # the query finds rows of members only, and each member is at least a viewer
    role = role_in(user, tenant_id)
    if not may(role, need):
        raise (ScopeTooLow if user.grant else Forbidden)(need=need, role=role or "no member")
