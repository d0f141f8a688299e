"""A destination's secrets, opened: what signs, and what must never be shown."""

import logging
from collections.abc import Callable

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from msgspec import Struct

from dataplane.tables.records import DestinationRecord
from dataplane.tables.sealed import signing_place, unbind
from dataplane.transmit.signature import Signer, signer

log = logging.getLogger(__name__)

Opener = Callable[[str], str]


class Secrets(Struct, frozen=True):
    """`locked` is the cause why nothing may be sent, "" if all is well; `texts` are to be masked wherever they show."""

    locked: str = ""
    signers: tuple[Signer, ...] = ()
    texts: tuple[str, ...] = ()


def opener(fernet_keys: tuple[str, ...]) -> Opener:
    """Opens Fernet tokens under any of the keys. The opener raises ValueError or InvalidToken."""
    if not fernet_keys:
        return _closed
    fernet = MultiFernet([Fernet(key) for key in fernet_keys])
    return lambda token: fernet.decrypt(token).decode()


def open_secrets(record: DestinationRecord, open_: Opener) -> Secrets:
    """One tenant's secret that cannot be opened must not stop the lane: its destination is locked, and says why."""
    try:
        place = signing_place(record.pipe, record.name)
        texts = tuple(unbind(open_(token), place) for token in record.secrets)
        return Secrets("", tuple(signer(text) for text in texts), texts)
    except (InvalidToken, ValueError) as exc:
        why = str(exc) or "no key of PENSTOCK_FERNET_KEYS opens it"
        log.error("pipe=%s destination=%s waits: its signing secret: %s", record.pipe, record.name, why)
        return Secrets("secret-unreadable")


def _closed(_token: str) -> str:
    raise ValueError("needs PENSTOCK_FERNET_KEYS, got nothing")
