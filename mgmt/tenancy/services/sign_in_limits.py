"""Limits on password attempts: by account, by address, and by both. One rule for each caller that checks a password."""

import secrets
import unicodedata
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.core import signing

from mgmt.tenancy.services.rate_limits import CountedTry, TryLimit, forget, hit, network_of, wait_s

_SALT: Final = "penstock.device"
DEVICE_MAX_AGE: Final = timedelta(days=180)

# Ten for one account from one address stop a guesser; a hundred from one address are enough for an office behind
# one router; a hundred for one account bound a guesser with many addresses to 2 400 tries a day.
PER_ACCOUNT_AND_ADDRESS: Final = TryLimit("sign-in: account and address", 10, timedelta(minutes=5))
PER_ADDRESS: Final = TryLimit("sign-in: address", 100, timedelta(minutes=5))
PER_ACCOUNT: Final = TryLimit("sign-in: account", 100, timedelta(hours=1))
LINKS_PER_ADDRESS: Final = TryLimit("sign-in link: address", 30, timedelta(minutes=5))


class Device(NamedTuple):
    """A browser that has signed in to the account before, identified by its signed cookie."""

    account: str
    id: str


class SignInAttempt(NamedTuple):
    """Sign-in attempt: the account as the attempt named it (existing or not), the address, and the known browser.

    A user name and the e-mail addresses of its account are counted separately: a limit that they shared would show
    which address belongs to which account.
    """

    account: str
    address: str
    device: str = ""

    @property
    def counted(self) -> list[CountedTry]:
        """The limits that apply to the attempt.

        A guesser must not lock out the owner of an account: a known browser is counted separately from its address and
        from other attempts on the account.
        """
        if self.device:
            return [CountedTry(PER_ACCOUNT_AND_ADDRESS, f"{self.account}\0device {self.device}")]
        by_account = [CountedTry(PER_ACCOUNT, self.account)]
        if not self.address:  # not over HTTP
            return by_account
        both = f"{self.account}\0{self.address}"
        return [CountedTry(PER_ACCOUNT_AND_ADDRESS, both), CountedTry(PER_ADDRESS, self.address), *by_account]


def attempt_of(*, username: str, address: str, device: str = "", typed: str = "") -> SignInAttempt:
    """Return the attempt of a user name, an address and a device cookie.

    typed: the e-mail address that the attempt gave in place of the user name
    """
    known = _device_of(device)
    is_known = known is not None and known.account == account_of(username)
    return SignInAttempt(account_of(typed or username), network_of(address), known.id if known and is_known else "")


def account_of(username: str) -> str:
    """Return the normalized account name under which attempts are counted: variants of one name count together."""
    return unicodedata.normalize("NFKC", username).casefold().strip()[:150]


def wait_for_attempt_s(attempt: SignInAttempt, now: datetime) -> int:
    """Return 0 if the password may be checked, else the seconds until it may."""
    return wait_s(attempt.counted, now)


def note_failure(attempt: SignInAttempt, now: datetime) -> None:
    """Count a wrong password."""
    for limit, subject in attempt.counted:
        hit(limit, subject, now)


def note_success(attempt: SignInAttempt) -> None:
    """Reset the failures of this account from this address; the counts of the address and of the account stay."""
    limit, subject = attempt.counted[0]
    if limit is PER_ACCOUNT_AND_ADDRESS:
        forget(limit, subject)


def new_device(username: str) -> str:
    """Return the device cookie for a browser that has just signed in to this account."""
    return signing.dumps(Device(account_of(username), secrets.token_hex(8)), salt=_SALT)


def _device_of(cookie: str) -> Device | None:
    if not cookie:
        return None
    try:
        return Device(*signing.loads(cookie, salt=_SALT, max_age=DEVICE_MAX_AGE))
    except (signing.BadSignature, ValueError, TypeError):
        return None
