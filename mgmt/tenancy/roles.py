"""Order of the roles: each may do all that the ones before it may. Pure."""

from typing import Final

from mgmt.tenancy.models import Membership

_ORDER: Final = tuple(Membership.Role)


def includes(role: str, need: str) -> bool:
    """Return True if a role may do all that the role `need` may."""
    return _rank(role) >= _rank(need)


def lower_role(one: str, other: str) -> str:
    """Return the role that may do less."""
    return min(one, other, key=_rank)


def _rank(role: str) -> int:
    return _ORDER.index(Membership.Role(role))
