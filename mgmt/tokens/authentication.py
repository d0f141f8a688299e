"""Check of an API token: from the text of a request to the user with their grant."""

from typing import NamedTuple

from django.utils import timezone

from dataplane.spec.keys import key_digest
from mgmt.models import ApiToken, User
from mgmt.tenancy.models import Grant
from mgmt.tenancy.roles import lower_role
from mgmt.tenancy.row_scope import all_tenants
from mgmt.tokens.models import ROLE_OF_SCOPE
from mgmt.tokens.queries import token_with_role
from mgmt.tokens.services.tokens import note_use
from mgmt.tokens.text import is_well_formed


class TokenRefused(Exception):  # noqa: N818 named for what the caller answers
    """The token authenticates nobody. `code`: one of mgmt.web.problems.PROBLEMS."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class CheckedToken(NamedTuple):
    """Valid token, and its user with the grant."""

    token: ApiToken
    user: User


@all_tenants("authentication")
def check_token(text: str, address: str) -> CheckedToken:
    """Return the token of a request and its user, and note the use. Raises TokenRefused."""
    now = timezone.now()
    token = token_with_role(key_digest(text)) if is_well_formed(text) else None
    if token is None:
        raise TokenRefused("token-invalid", "No token has this text. Check that it was copied whole.")
    if token.revoked_at is not None:
        raise TokenRefused("token-revoked", f"The token {token.name} was revoked. Create a new one.")
    if token.expires_at is not None and token.expires_at <= now:
        day = f"{token.expires_at:%Y-%m-%d}"
        raise TokenRefused("token-expired", f"The token {token.name} expired on {day}. Create a new one.")
    role = token.role  # type: ignore[attr-defined]  # annotated
    if not token.user.is_active or role is None:
        raise TokenRefused("token-invalid", f"{token.user} can no longer use this tenant. Use another user's token.")
    if not token.is_vouched_for:  # type: ignore[attr-defined]  # annotated
        raise TokenRefused(
            "token-invalid",
            f"The single sign-on with which the token {token.name} was created is off. Create a new one.",
        )
    note_use(token, address, now)
    allowed = lower_role(ROLE_OF_SCOPE[ApiToken.Scope(token.scope)], role)
    token.user.grant = Grant(token.id, token.name, token.tenant_id, allowed, token.pipe_id)
    token.user.sso_connection_id = token.sso_connection_id  # the tokens that it creates depend on it, too
    return CheckedToken(token, token.user)
