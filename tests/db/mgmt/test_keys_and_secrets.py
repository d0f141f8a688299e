"""API keys and signing secrets: shown once, kept as a digest or a ciphertext, replaced without a gap."""

import hashlib

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from dataplane.spec.keys import key_digest, key_is_well_formed, key_text
from mgmt.models import ApiKey, Pipe
from mgmt.services import PipeClosed, close_pipe, create_api_key, revoke_api_key, rotate_signing_secret
from mgmt.services.secrets import decrypt, encrypt


def test_a_key_is_handed_over_once_and_only_its_digest_is_kept(pipe: Pipe):
    row, key = create_api_key(source=pipe.sources.get(), label="laptop")
    assert row.digest == hashlib.sha256(key.encode()).hexdigest() == key_digest(key)
    assert row.prefix == key[:12]
    assert key not in str(list(ApiKey.objects.values()))


def test_a_key_that_was_mistyped_is_refused_without_a_look_up():
    key = key_text(bytes(range(20)))
    assert key_is_well_formed(key)
    wrong = [key[:-1], key + "0", key.upper(), "", "psk_", key[:20] + ("0" if key[20] != "0" else "1") + key[21:]]
    assert not any(key_is_well_formed(one) for one in wrong)


def test_revoking_is_final_and_the_first_time_stands(pipe: Pipe):
    row, _key = create_api_key(source=pipe.sources.get())
    assert revoke_api_key(key=row)
    first, version = row.revoked_at, row.version
    assert not revoke_api_key(key=row)
    assert (row.revoked_at, row.version) == (first, version) == (first, 2)


def test_a_closed_pipe_gets_no_new_key(pipe: Pipe):
    close_pipe(pipe=pipe)
    with pytest.raises(PipeClosed):
        create_api_key(source=pipe.sources.get())


def test_a_rotated_secret_stands_first_and_only_one_old_one_stays(pipe: Pipe):
    row = pipe.destinations.get()
    oldest = decrypt(row.secrets[0])
    row, middle = rotate_signing_secret(destination=row)
    assert [decrypt(token) for token in row.secrets] == [middle, oldest]
    row, newest = rotate_signing_secret(destination=row)
    assert [decrypt(token) for token in row.secrets] == [newest, middle]
    assert row.version == 3


def test_secrets_are_opened_by_any_key_and_written_by_the_first(settings: Settings):
    old = list(settings.PENSTOCK_FERNET_KEYS)
    token = encrypt("whsec_x")
    settings.PENSTOCK_FERNET_KEYS = ["MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", *old]
    assert decrypt(token) == "whsec_x"
    settings.PENSTOCK_FERNET_KEYS = settings.PENSTOCK_FERNET_KEYS[:1]
    with pytest.raises(ImproperlyConfigured, match="Put the key back"):
        decrypt(token)


def test_without_a_key_nothing_is_stored_in_clear(settings: Settings):
    settings.PENSTOCK_FERNET_KEYS = []
    with pytest.raises(ImproperlyConfigured, match="PENSTOCK_FERNET_KEYS"):
        encrypt("whsec_x")
