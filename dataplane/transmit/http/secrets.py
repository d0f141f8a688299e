"""Decrypt a destination's secrets: signing secrets, credentials, and the texts that must never be shown."""

import base64
import logging
from typing import Final

import msgspec
from cryptography.fernet import InvalidToken
from msgspec import Struct

from dataplane.causes import Cause
from dataplane.spec import AwsAuth, BasicAuth, BearerAuth, HeaderAuth, MutualTls, OAuth2, PostgresAuth, endpoint_of
from dataplane.tables.records import DestinationRecord
from dataplane.tables.sealed import Opener, credential_place, signing_place, unbind
from dataplane.transmit.http.sender import AwsKey, ClientIdentity, RequestIdentity
from dataplane.transmit.http.signature import Signer, signer

log = logging.getLogger(__name__)


class OpenedSecrets(Struct, frozen=True):
    """Decrypted secrets of one destination.

    locked:        cause for which nothing may be sent, "" if the destination may be sent to
    texts:         texts to mask wherever an answer is shown
    headers:       whole header lines that authenticate a request
    client_secret: client secret for OAuth2 token requests
    password:      password of a database user
    identity:      client certificate for mutual TLS, or access key of an S3-compatible store
    """

    locked: str = ""
    signers: tuple[Signer, ...] = ()
    texts: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    client_secret: str = ""
    password: str = ""
    identity: RequestIdentity = None


class CredentialMissingError(ValueError):
    """No credential is stored for the endpoint that the destination has now."""


class _Credential(Struct, frozen=True):
    """Stored credential; each kind of auth uses its own fields.

    endpoint: endpoint it was entered for (dataplane.spec.endpoint_of); "" in one stored before endpoints were kept
    """

    endpoint: str = ""

    value: str = ""
    password: str = ""
    client_secret: str = ""
    certificate: str = ""
    key: str = ""
    secret_access_key: str = ""


_credential: Final = msgspec.json.Decoder(_Credential)


def open_secrets(record: DestinationRecord, open_: Opener) -> OpenedSecrets:
    """Decrypt a destination's secrets.

    Never raises: one tenant's unreadable secret must not stop the lane. The result is locked with a cause instead.
    """
    try:
        context = signing_place(record.pipe, record.name)
        signing = tuple(unbind(open_(token), context) for token in record.secrets)
        secrets = _auth_secrets(record, _opened_credential(record, open_))
        texts = (*signing, *secrets.texts)
        return msgspec.structs.replace(secrets, signers=tuple(signer(text) for text in signing), texts=texts)
    except CredentialMissingError:
        log.warning("pipe=%s destination=%s locked: no credential is stored for its endpoint", record.pipe, record.name)
        return OpenedSecrets(Cause.CREDENTIAL_MISSING)
    except (InvalidToken, ValueError) as exc:
        reason = str(exc) or "no key of PENSTOCK_FERNET_KEYS decrypts it"
        log.error("pipe=%s destination=%s locked: unreadable secret: %s", record.pipe, record.name, reason)
        return OpenedSecrets(Cause.SECRET_UNREADABLE)


def _opened_credential(record: DestinationRecord, open_: Opener) -> _Credential:
    if not record.credential:
        return _Credential()
    text = unbind(open_(record.credential), credential_place(record.pipe, record.name))
    credential = _credential.decode(text)
    if credential.endpoint and credential.endpoint != endpoint_of(record.to):
        raise CredentialMissingError
    return credential


def _auth_secrets(record: DestinationRecord, credential: _Credential) -> OpenedSecrets:
    """Raise ValueError if the kind of auth needs a secret that is missing or cannot be sent."""
    identity: RequestIdentity = None
    password = ""
    match record.to.auth:
        case HeaderAuth(name):
            value = _header_safe(credential.value, "value")
            return OpenedSecrets(headers=(f"{name}: {value}",), texts=(value,))
        case BearerAuth():
            value = _header_safe(credential.value, "value")
            return OpenedSecrets(headers=(f"Authorization: Bearer {value}",), texts=(value,))
        case BasicAuth(username):
            pair = f"{username}:{_required(credential.password, 'password')}".encode()
            value = base64.b64encode(pair).decode()
            return OpenedSecrets(headers=(f"Authorization: Basic {value}",), texts=(credential.password, value))
        case OAuth2():
            secret = _required(credential.client_secret, "client_secret")
            return OpenedSecrets(client_secret=secret, texts=(secret,))
        case PostgresAuth():
            text = password = _required(credential.password, "password")
        case MutualTls():
            certificate, text = _required(credential.certificate, "certificate"), _required(credential.key, "key")
            identity = ClientIdentity(certificate, text)
        case AwsAuth(access_key_id, region):
            text = _header_safe(credential.secret_access_key, "secret_access_key")
            identity = AwsKey(region, access_key_id, text)
        case _:
            return OpenedSecrets()
    return OpenedSecrets(identity=identity, password=password, texts=(text,))


def _required(secret: str, field: str) -> str:
    if not secret:
        raise CredentialMissingError(f"credential: needs {field}, got none")
    return secret


def _header_safe(secret: str, field: str) -> str:
    if not all(" " <= c <= "~" for c in _required(secret, field)):
        raise ValueError(f"{field}: needs printable ASCII, because it is sent in a header")
    return secret
