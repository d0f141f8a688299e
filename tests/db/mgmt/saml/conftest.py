"""A SAML provider, and a tenant that is connected to it."""

from collections.abc import Iterator

import pytest

from mgmt.models import SsoConnection, Tenant, User
from tests.db.mgmt.saml.flow import connect
from tests.support.saml_provider import SamlProvider


@pytest.fixture
def idp() -> Iterator[SamlProvider]:
    provider = SamlProvider()
    provider.start()
    yield provider
    provider.stop()


@pytest.fixture
def connection(tenant: Tenant, idp: SamlProvider, alice: User) -> SsoConnection:
    return connect(tenant, idp, alice)
