"""A provider, a tenant that is connected to it, and a name server."""

from collections.abc import Iterator

import pytest

from mgmt.models import SsoConnection, Tenant, User
from tests.db.mgmt.oidc.flow import connect
from tests.support.identity_provider import IdentityProvider
from tests.support.name_server import NameServer


@pytest.fixture
def idp() -> Iterator[IdentityProvider]:
    provider = IdentityProvider()
    provider.start()
    yield provider
    provider.stop()


@pytest.fixture
def name_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    """DNS server that the resolver of this process asks."""
    server = NameServer()
    resolver = server.resolver()
    monkeypatch.setattr("dns.resolver.Resolver", lambda: resolver)
    yield server
    server.stop()


@pytest.fixture
def connection(tenant: Tenant, idp: IdentityProvider, alice: User) -> SsoConnection:
    return connect(tenant, idp, alice)
