"""Access tokens of table queries: only our own signature counts, for its table, until its end."""

import base64

import pytest
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st

from dataplane.tables.access_tokens import MOST_TOKEN_BYTES, AccessRefusedError, TableAccess, read_access, sign_access

OLD_KEY, KEY = Fernet.generate_key().decode(), Fernet.generate_key().decode()
ACCESS = TableAccess("ten_1", "tab_1", "users", 1_000)


def test_token_is_read_with_the_key_that_signed_it_also_after_a_rotation():
    token = sign_access([OLD_KEY], ACCESS)
    assert read_access([OLD_KEY], token, 999.9) == ACCESS
    assert read_access([KEY, OLD_KEY], token, 0) == ACCESS
    with pytest.raises(AccessRefusedError):
        read_access([KEY], token, 0)


def test_token_ends_at_its_time():
    with pytest.raises(AccessRefusedError, match="expired"):
        read_access([KEY], sign_access([KEY], ACCESS), 1_000)


def test_claims_cannot_be_changed_under_a_signature():
    signature = sign_access([KEY], ACCESS).partition(".")[2]
    other = sign_access([OLD_KEY], TableAccess("ten_1", "tab_2", "users", 1_000)).partition(".")[0]
    with pytest.raises(AccessRefusedError):
        read_access([KEY], f"{other}.{signature}", 0)


def test_fernet_token_of_the_same_key_is_no_access_token():
    with pytest.raises(AccessRefusedError):
        read_access([KEY], Fernet(KEY).encrypt(b"{}").decode(), 0)


@pytest.mark.parametrize(
    "token",
    ["", ".", "a", "a.b", "é.é", "=.=", "\x00.\x00", "a" * (MOST_TOKEN_BYTES + 1), "e30.", ".e30", "e30.e30", "a.b.c"],
)
def test_malformed_token_is_refused(token: str):
    with pytest.raises(AccessRefusedError):
        read_access([KEY], token, 0)


@given(st.text(max_size=80))
def test_any_text_is_refused_and_raises_nothing_else(token: str):
    with pytest.raises(AccessRefusedError):
        read_access([KEY], token, 0)


def test_signed_claims_of_another_release_are_refused():
    from dataplane.tables.access_tokens import _signature

    claims = b'{"what":1}'
    parts = (base64.urlsafe_b64encode(data).rstrip(b"=").decode() for data in (claims, _signature(KEY, claims)))
    with pytest.raises(AccessRefusedError, match="release"):
        read_access([KEY], ".".join(parts), 0)


def test_no_token_is_signed_without_a_key():
    with pytest.raises(ValueError, match="key"):
        sign_access([], ACCESS)
