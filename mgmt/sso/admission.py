"""Decision on the sign-in of an identity that a tenant's provider has confirmed. Pure.

The provider speaks for its tenant only. A claimed e-mail address selects no account: it restricts who may sign in,
finds an invitation, and shows a member that their account can be linked, which they do by their existing means.
"""

from collections.abc import Collection
from enum import Enum
from typing import NamedTuple


class SsoOutcome(Enum):
    """Outcome of a sign-in by single sign-on."""

    SIGN_IN = "sign in"
    ACCEPT_INVITATION = "accept the invitation, then sign in"
    LINK = "sign in by existing means, then link"
    CREATE = "create an account"


class Identity(NamedTuple):
    """Identity that a provider has confirmed. `email`: as the provider claims it, in lower case, or "".

    is_verified: the provider says that the person has this address; some let their users enter any
    """

    subject: str
    email: str
    name: str = ""
    is_verified: bool = False


class KnownAccount(NamedTuple):
    """Account that the identity is linked to."""

    is_active: bool
    is_staff: bool
    is_member: bool


class IdentityFacts(NamedTuple):
    """Facts about an identity. `email`: the claimed address in lower case, or ""; `domains`: allowed ones, if any."""

    email: str
    domains: Collection[str]
    account: KnownAccount | None
    is_address_of_member: bool
    is_invited: bool
    joins_freely: bool


class SsoRefused(Exception):  # noqa: N818 named for what the caller answers
    """The identity may not sign in; the text says what to do."""


def decide(facts: IdentityFacts) -> SsoOutcome:
    """Return what happens to the identity. Raises SsoRefused."""
    domain = facts.email.rpartition("@")[2]
    if facts.domains and domain not in facts.domains:
        claimed = f"has the address {facts.email}" if facts.email else "has no e-mail address"
        raise SsoRefused(
            f"Your identity provider says that your account {claimed}. This organisation accepts only addresses at "
            f"{', '.join(sorted(facts.domains))}. Ask its owner to add the domain, or sign in with another account."
        )
    if facts.account is not None:
        return _known(facts.account, is_invited=facts.is_invited)
    if facts.is_address_of_member:
        return SsoOutcome.LINK
    if facts.is_invited or facts.joins_freely:
        return SsoOutcome.CREATE
    raise SsoRefused(_NOT_INVITED)


def _known(account: KnownAccount, *, is_invited: bool) -> SsoOutcome:
    if not account.is_active:
        raise SsoRefused("Your Penstock account is closed. Ask an owner of your organisation.")
    if account.is_staff:
        raise SsoRefused("Accounts of Penstock's staff do not sign in by single sign-on. Use your password or passkey.")
    if account.is_member:
        return SsoOutcome.SIGN_IN
    if is_invited:
        return SsoOutcome.ACCEPT_INVITATION
    raise SsoRefused("You are no longer a member of this organisation. Ask one of its owners to invite you again.")


_NOT_INVITED = "This organisation admits only invited people. Ask one of its owners to invite you, then sign in again."
