"""How often a password may be tried: by account, by address, and by both. One rule for every place that checks one."""

import secrets
import unicodedata
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.core import signing

from mgmt.services.limits import Counted, Limit, forget, hit, network_of, wait_s

_SALT: Final = "penstock.device"
DEVICE_MAX_AGE: Final = timedelta(days=180)

# Ten for one account from one address keep a guesser out; a hundred from one address leave room for an office behind
# one router; a hundred for one account bound a guesser with many addresses to 2 400 tries a day.
PER_ACCOUNT_AND_ADDRESS: Final = Limit("sign-in: account and address", 10, timedelta(minutes=5))
PER_ADDRESS: Final = Limit("sign-in: address", 100, timedelta(minutes=5))
PER_ACCOUNT: Final = Limit("sign-in: account", 100, timedelta(hours=1))
LINKS_PER_ADDRESS: Final = Limit("sign-in link: address", 30, timedelta(minutes=5))
PASSWORD_CHANGES: Final = Limit("password change: account", 10, timedelta(hours=1))


class Device(NamedTuple):
    """A browser in which the account was signed in to before, by its signed cookie."""

    account: str
    id: str


class SignInAttempt(NamedTuple):
    """A try to sign in: which account (existing or not), from where, in which known browser."""

    account: str
    address: str
    device: str = ""

    @property
    def counted(self) -> list[Counted]:
        """The limits that hold for it.

        Others who guess an account must not lock its owner out: a browser that is known counts by itself, whatever its
        address and the account's other tries.
        """
        if self.device:
            return [Counted(PER_ACCOUNT_AND_ADDRESS, f"{self.account}\0device {self.device}")]
        by_account = [Counted(PER_ACCOUNT, self.account)]
        if not self.address:  # not over HTTP
            return by_account
        both = f"{self.account}\0{self.address}"
        return [Counted(PER_ACCOUNT_AND_ADDRESS, both), Counted(PER_ADDRESS, self.address), *by_account]


def attempt_of(*, username: str, address: str, device: str = "") -> SignInAttempt:
    """Return the attempt that a name, an address and a device cookie mean."""
    account, known = account_of(username), _device_of(device)
    return SignInAttempt(account, network_of(address), known.id if known and known.account == account else "")


def account_of(username: str) -> str:
    """Return the account that a typed name counts for: variants of one name count together."""
    return unicodedata.normalize("NFKC", username).casefold().strip()[:150]


def wait_for_attempt_s(attempt: SignInAttempt, now: datetime) -> int:
    """Return 0 if the password may be checked, else in how many seconds it may."""
    return wait_s(attempt.counted, now)


def note_failure(attempt: SignInAttempt, now: datetime) -> None:
    """Count a wrong password."""
    for limit, subject in attempt.counted:
        hit(limit, subject, now)


def note_success(attempt: SignInAttempt) -> None:
    """Forget the failures of this account from this address; those of the address and of the account stay."""
    limit, subject = attempt.counted[0]
    if limit is PER_ACCOUNT_AND_ADDRESS:
        forget(limit, subject)


def new_device(username: str) -> str:
    """Return the cookie of a browser in which this account was just signed in to."""
    return signing.dumps(Device(account_of(username), secrets.token_hex(8)), salt=_SALT)


def _device_of(cookie: str) -> Device | None:
    if not cookie:
        return None
    try:
        return Device(*signing.loads(cookie, salt=_SALT, max_age=DEVICE_MAX_AGE))
    except (signing.BadSignature, ValueError, TypeError):
        return None
