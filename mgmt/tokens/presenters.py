"""API tokens as the console shows them. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from mgmt.models import ApiToken

EXPIRES_SOON: Final = timedelta(days=14)


@dataclass(frozen=True)
class TokenLine:
    """Row of the list. `owner`: a user name, or the name of a service account."""

    token: ApiToken
    owner: str
    is_expired: bool
    expires_soon: bool


def token_lines(tokens: Iterable[ApiToken], now: datetime) -> list[TokenLine]:
    """Return the rows of the list."""
    return [_line(token, now) for token in tokens]


def _line(token: ApiToken, now: datetime) -> TokenLine:
    user, until = token.user, token.expires_at
    owner = user.service_account.name if user.is_service_account else user.get_username()
    is_expired = until is not None and until <= now
    return TokenLine(token, owner, is_expired, until is not None and not is_expired and until - now <= EXPIRES_SOON)
