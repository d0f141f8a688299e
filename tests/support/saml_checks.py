"""Checks of SAML responses in tests: the parties of one tenant, and a provider that signs truth and lies."""

import base64
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

import pytest

from mgmt.errors import SsoError
from mgmt.sso.saml.response import SamlAssertion, SamlParties, check_response
from tests.support.saml_provider import Asked, Lies, SamlProvider, own_signer

ENTITY: Final = "https://penstock.example/sso/ten_a/saml/metadata/"
ACS: Final = "https://penstock.example/sso/ten_a/saml/acs/"
ASKED: Final = Asked(ENTITY, ACS, "_request")
EMAIL: Final = "dora@acme.example"


@cache
def provider() -> SamlProvider:
    return SamlProvider()


def parties(**changes: Any) -> SamlParties:
    return SamlParties(provider().entity_id, (own_signer().certificate,), ENTITY, ACS)._replace(**changes)


def check(encoded: str, *, after: timedelta = timedelta(0), **changes: Any) -> SamlAssertion:
    return check_response(encoded, parties=parties(**changes), now=datetime.now(UTC) + after)


def response(asked: Asked = ASKED, **lies: Any) -> str:
    provider().lies = Lies(**lies)
    return provider().response(asked, EMAIL)


def refused(encoded: str, words: str | None, **changes: Any) -> None:
    with pytest.raises(SsoError, match=words):
        check(encoded, **changes)


def encoded(text: bytes | str) -> str:
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def text_in(found: str) -> str:
    return base64.b64decode(found).decode()
