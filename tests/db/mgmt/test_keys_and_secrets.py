"""API keys and signing secrets: shown once, stored as digest or ciphertext, rotated without a gap."""

import hashlib
import json
from datetime import timedelta
from io import StringIO

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.utils import timezone
from pytest_django import Settings

from controlplane.provisioner.records import desired_records
from dataplane.spec.keys import key_digest, key_is_well_formed, key_text
from dataplane.tables.records import ApiKeyRecord, api_key_key
from mgmt.models import ApiKey, Destination, Pipe, User
from mgmt.quotas.queries import live_keys
from mgmt.services import (
    InvalidValue,
    KeyEndedError,
    PipeClosedError,
    close_pipe,
    create_api_key,
    revoke_api_key,
    rotate_api_key,
    rotate_signing_secret,
    set_credential,
    signing_secrets,
)
from mgmt.tenancy.secrets import decrypt, encrypt
from tests.db.cast import MakeClient
from tests.db.channels import add_active_channel


def test_key_is_returned_once_and_only_its_digest_is_stored(pipe: Pipe):
    row, key = create_api_key(source=pipe.sources.get(), label="laptop")
    assert row.digest == hashlib.sha256(key.encode()).hexdigest() == key_digest(key)
    assert row.prefix == key[:12]
    assert key not in str(list(ApiKey.objects.values()))


def test_mistyped_key_is_refused_without_a_query():
    key = key_text(bytes(range(20)))
    assert key_is_well_formed(key)
    wrong = [key[:-1], key + "0", key.upper(), "", "psk_", key[:20] + ("0" if key[20] != "0" else "1") + key[21:]]
    assert not any(key_is_well_formed(one) for one in wrong)


def test_revocation_is_final_and_keeps_its_first_time(pipe: Pipe):
    row, _key = create_api_key(source=pipe.sources.get())
    assert revoke_api_key(key=row)
    first, version = row.revoked_at, row.version
    assert not revoke_api_key(key=row)
    assert (row.revoked_at, row.version) == (first, version) == (first, 2)


def test_closed_pipe_gets_no_new_key(pipe: Pipe):
    close_pipe(pipe=pipe)
    with pytest.raises(PipeClosedError):
        create_api_key(source=pipe.sources.get())


def test_rotated_secret_is_first_and_only_one_old_secret_remains(pipe: Pipe):
    row = pipe.destinations.get()
    (oldest,) = signing_secrets(destination=row)
    row, middle = rotate_signing_secret(destination=row)
    assert signing_secrets(destination=row) == [middle, oldest]
    row, newest = rotate_signing_secret(destination=row)
    assert signing_secrets(destination=row) == [newest, middle]
    assert row.version == 3


def test_secrets_are_decrypted_with_any_key_and_encrypted_with_the_first(settings: Settings):
    old = list(settings.PENSTOCK_FERNET_KEYS)
    token = encrypt("whsec_x", "p/d/secret")
    settings.PENSTOCK_FERNET_KEYS = ["MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", *old]
    assert decrypt(token, "p/d/secret") == "whsec_x"
    settings.PENSTOCK_FERNET_KEYS = settings.PENSTOCK_FERNET_KEYS[:1]
    with pytest.raises(ImproperlyConfigured, match="Restore the key"):
        decrypt(token, "p/d/secret")


def test_encryption_without_a_key_is_refused(settings: Settings):
    settings.PENSTOCK_FERNET_KEYS = []
    with pytest.raises(ImproperlyConfigured, match="PENSTOCK_FERNET_KEYS"):
        encrypt("whsec_x", "p/d/secret")


def test_rotation_encrypts_every_secret_with_the_first_key_in_its_place(pipe: Pipe, settings: Settings):
    row = pipe.destinations.get()
    Destination.objects.filter(id=row.id).update(
        config={"type": "http", "url": "https://a.example/", "auth": {"type": "bearer"}}
    )
    row.refresh_from_db()
    set_credential(destination=row, credential={"value": "top secret"})
    channel, secret = add_active_channel(tenant=pipe.tenant, kind="webhook", target="https://hooks.example.com/")
    before = signing_secrets(destination=row)
    settings.PENSTOCK_FERNET_KEYS = [Fernet.generate_key().decode(), *settings.PENSTOCK_FERNET_KEYS]
    call_command("rotate_secrets", stdout=StringIO())
    settings.PENSTOCK_FERNET_KEYS = settings.PENSTOCK_FERNET_KEYS[:1]
    version = row.version
    row.refresh_from_db()
    channel.refresh_from_db()
    assert signing_secrets(destination=row) == before
    opened = json.loads(decrypt(row.credential, f"{pipe.id}/crm/credential"))
    assert opened == {"value": "top secret", "endpoint": "https://a.example:443"}
    assert decrypt(channel.secret, f"{pipe.tenant_id}/{channel.id}/secret") == secret
    assert row.version == version + 1


def test_token_of_another_row_is_not_decrypted(pipe: Pipe):
    row = pipe.destinations.get()
    with pytest.raises(ValueError, match="another row or field"):
        decrypt(row.secrets[0], f"{pipe.id}/erp/secret")


@pytest.mark.parametrize(
    ("auth", "credential", "field"),
    [
        ({"type": "none"}, {"value": "x"}, "credential"),
        ({"type": "bearer"}, {}, "value"),
        ({"type": "bearer"}, {"value": "a\r\nHost: b"}, "value"),
        ({"type": "basic", "username": "u"}, {"password": "p", "more": "x"}, "more"),
        ({"type": "mtls"}, {"certificate": "-----BEGIN"}, "key"),
    ],
)
def test_credential_must_fit_its_auth(pipe: Pipe, auth: dict[str, str], credential: dict[str, str], field: str):
    row = pipe.destinations.get()
    row.config = {"type": "http", "url": "https://a.example/", "auth": auth}
    with pytest.raises(InvalidValue) as refused:
        set_credential(destination=row, credential=credential)
    assert refused.value.field == field


def test_rotated_key_has_a_successor_and_ends_after_the_overlap(pipe: Pipe, alice: User):
    now = timezone.now()
    old, _ = create_api_key(source=pipe.sources.get(), label="till")
    new, plaintext = rotate_api_key(key=old, by=alice, overlap=timedelta(hours=24), now=now)
    old.refresh_from_db()
    assert (old.expires_at, old.version, old.revoked_at) == (now + timedelta(hours=24), 2, None)
    assert (new.label, new.source, new.expires_at, new.digest) == ("till", old.source, None, key_digest(plaintext))
    rotate_api_key(key=old, by=alice, overlap=timedelta(hours=48), now=now)
    old.refresh_from_db()
    assert (old.expires_at, old.version) == (now + timedelta(hours=24), 2), "a second rotation lengthens nothing"


def test_expiry_of_a_key_is_in_its_control_record(pipe: Pipe):
    row, _ = create_api_key(source=pipe.sources.get(), days=1)
    (record,) = desired_records([api_key_key(row.digest)]).records
    assert isinstance(record, ApiKeyRecord)
    assert row.expires_at is not None
    assert record.expires_us == int(row.expires_at.timestamp() * 1_000_000)


def test_ended_key_is_not_rotated_and_frees_the_quota(pipe: Pipe, alice: User):
    revoked, _ = create_api_key(source=pipe.sources.get())
    revoke_api_key(key=revoked)
    expired, _ = create_api_key(source=pipe.sources.get())
    ApiKey.objects.filter(id=expired.id).update(expires_at=timezone.now())
    for key in (revoked, expired):
        with pytest.raises(KeyEndedError, match="Create a new key"):
            rotate_api_key(key=key, by=alice, overlap=timedelta(), now=timezone.now())
    assert not live_keys(pipe.tenant_id).exists()


def test_rotation_by_the_api_returns_the_new_key_once(pipe: Pipe, alice: User, client_of: MakeClient):
    key, _ = create_api_key(source=pipe.sources.get(), label="till")
    url = f"/api/v1/pipes/{pipe.id}/keys/{key.id}/rotate/"
    answer = client_of(alice).post(url, {"overlap_hours": 0, "expires_in_days": 90})
    assert answer.status_code == 201
    assert answer["Cache-Control"] == "no-store"
    assert key_is_well_formed(answer.json()["key"])
    assert answer.json()["expires_at"] is not None
    again = client_of(alice).post(url, {})
    assert (again.status_code, again.json()["code"]) == (409, "key-ended")
    assert client_of(alice).post(url, {"overlap_hours": 721}).status_code == 400
