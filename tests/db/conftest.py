"""Shared users: Alice owns, Bob is an editor of her tenant, Charlie is of another tenant and sees nothing."""

from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings
from rest_framework.test import APIClient

from mgmt.models import Membership, Pipe, Tenant, User
from mgmt.services import add_member, create_pipe, create_tenant
from tests.db.cast import MakeClient, MakeSpec
from tests.support.table_service import TableService

Role = Membership.Role


@pytest.fixture(autouse=True)
def _fresh_keys_and_counters(settings: Settings) -> None:
    settings.PENSTOCK_FERNET_KEYS = [Fernet.generate_key().decode()]
    settings.PENSTOCK_TABLES_URL = "https://tables.example.com"
    settings.PENSTOCK_TABLES_HOSTS = ["http://127.0.0.1:1"]  # no host answers unless a test starts one
    settings.WHITENOISE_AUTOREFRESH = True  # otherwise each client of a test reads the list of all static files
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # the default takes half a second


@pytest.fixture(scope="session")
def table_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableService]:
    """Process that serves table queries, over a store that tests fill."""
    service = TableService(tmp_path_factory.mktemp("tables"))
    service.fill("tab_0", "ten_0", "first", {})
    service.start()
    yield service
    service.kill()


@pytest.fixture
def hosts(settings: Settings, table_service: TableService) -> TableService:
    """Host of the data plane that the management plane can reach."""
    settings.PENSTOCK_FERNET_KEYS = [table_service.key, *settings.PENSTOCK_FERNET_KEYS]
    settings.PENSTOCK_TABLES_HOSTS = [table_service.url]
    return table_service


@pytest.fixture
def alice(db: None) -> User:
    return User.objects.create_user("alice", password="alice's long password")


@pytest.fixture
def bob(db: None) -> User:
    return User.objects.create_user("bob")


@pytest.fixture
def charlie(db: None) -> User:
    user = User.objects.create_user("charlie")
    create_tenant(name="Charlie's", owner=user)
    return user


@pytest.fixture
def tenant(alice: User, bob: User) -> Tenant:
    tenant = create_tenant(name="Alice's", owner=alice)
    add_member(tenant=tenant, user=bob, role=Role.EDITOR)
    return tenant


@pytest.fixture
def a_spec() -> MakeSpec:
    """Factory of specs with one source, and destinations by name and URL."""

    def make(**urls: str) -> dict[str, Any]:
        urls = urls or {"crm": "https://crm.example.com/in"}
        return {"sources": {"shop": {}}, "destinations": {n: {"type": "http", "url": u} for n, u in urls.items()}}

    return make


@pytest.fixture
def pipe(tenant: Tenant, alice: User, a_spec: MakeSpec) -> Pipe:
    return create_pipe(tenant=tenant, name="orders", spec=a_spec(), author=alice)


@pytest.fixture
def client_of() -> MakeClient:
    """Factory of API clients with a signed-in user."""

    def make(user: User) -> APIClient:
        client = APIClient()
        client.force_login(user)
        return client

    return make
