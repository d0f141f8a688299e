"""A destination's secrets, opened: what signs, what signs in, and what must never be shown."""

import base64
import logging
from collections.abc import Callable
from typing import Final

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from msgspec import Struct

from dataplane.spec import BasicAuth, BearerAuth, HeaderAuth, MutualTls, OAuth2, endpoint_of
from dataplane.tables.records import DestinationRecord
from dataplane.tables.sealed import credential_place, signing_place, unbind
from dataplane.transmit.sender import Identity
from dataplane.transmit.signature import Signer, signer

log = logging.getLogger(__name__)

Opener = Callable[[str], str]


class Secrets(Struct, frozen=True):
    """`locked` is the cause why nothing may be sent, "" if all is well; `texts` are to be masked wherever they show.

    headers:       whole lines that sign a request in
    client_secret: what an OAuth2 token is fetched with
    identity:      the certificate that we show
    """

    locked: str = ""
    signers: tuple[Signer, ...] = ()
    texts: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    client_secret: str = ""
    identity: Identity | None = None


class CredentialMissingError(ValueError):
    """No credential is stored for the endpoint that the destination has now."""


class _Credential(Struct, frozen=True):
    """The auth's secret as it is stored; each kind of auth has its own fields.

    endpoint: what it was entered for (dataplane.spec.endpoint_of); "" in a secret of before endpoints were kept
    """

    endpoint: str = ""

    value: str = ""
    password: str = ""
    client_secret: str = ""
    certificate: str = ""
    key: str = ""


_credential: Final = msgspec.json.Decoder(_Credential)


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
        signing = tuple(unbind(open_(token), place) for token in record.secrets)
        secrets = _sign_in(record, _opened_credential(record, open_))
        texts = (*signing, *secrets.texts)
        return msgspec.structs.replace(secrets, signers=tuple(signer(text) for text in signing), texts=texts)
    except CredentialMissingError:
        log.warning("pipe=%s destination=%s waits: no credential is stored for its address", record.pipe, record.name)
        return Secrets("credential-missing")
    except (InvalidToken, ValueError) as exc:
        why = str(exc) or "no key of PENSTOCK_FERNET_KEYS opens it"
        log.error("pipe=%s destination=%s waits: a secret of it: %s", record.pipe, record.name, why)
        return Secrets("secret-unreadable")


def _opened_credential(record: DestinationRecord, open_: Opener) -> _Credential:
    if not record.credential:
        return _Credential()
    text = unbind(open_(record.credential), credential_place(record.pipe, record.name))
    credential = _credential.decode(text)
    if credential.endpoint and credential.endpoint != endpoint_of(record.to):
        raise CredentialMissingError
    return credential


def _sign_in(record: DestinationRecord, credential: _Credential) -> Secrets:
    """Raises ValueError if the kind of auth asks for a secret that is not there or cannot be sent."""
    match record.to.auth:
        case HeaderAuth(name):
            value = _sendable(credential.value, "value")
            return Secrets(headers=(f"{name}: {value}",), texts=(value,))
        case BearerAuth():
            value = _sendable(credential.value, "value")
            return Secrets(headers=(f"Authorization: Bearer {value}",), texts=(value,))
        case BasicAuth(username):
            both = f"{username}:{_there(credential.password, 'password')}".encode()
            value = base64.b64encode(both).decode()
            return Secrets(headers=(f"Authorization: Basic {value}",), texts=(credential.password, value))
        case OAuth2():
            secret = _there(credential.client_secret, "client_secret")
            return Secrets(client_secret=secret, texts=(secret,))
        case MutualTls():
            certificate, key = _there(credential.certificate, "certificate"), _there(credential.key, "key")
            return Secrets(identity=Identity(certificate, key), texts=(key,))
    return Secrets()


def _there(secret: str, field: str) -> str:
    if not secret:
        raise CredentialMissingError(f"the auth needs a credential with {field}, got none")
    return secret


def _sendable(secret: str, field: str) -> str:
    if not all(" " <= c <= "~" for c in _there(secret, field)):
        raise ValueError(f"{field} needs printable ASCII: it is sent in a header")
    return secret


def _closed(_token: str) -> str:
    raise ValueError("needs PENSTOCK_FERNET_KEYS, got nothing")
