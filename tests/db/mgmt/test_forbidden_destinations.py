"""No spelling of a forbidden address is stored, neither in a new pipe nor in a new revision."""

import pytest
from pytest_django import Settings

from dataplane.spec import SpecError
from dataplane.spec.loops import parse_endpoints
from mgmt.models import Pipe, PipeRevision, Tenant, User
from mgmt.services import create_pipe, publish_revision
from tests.db.cast import MakeClient, MakeSpec
from tests.support.forbidden import urls

FORMS = urls(8080)


@pytest.fixture(autouse=True)
def _as_outside_development(settings: Settings) -> None:
    settings.PENSTOCK_DESTINATION_ALLOW = ""


def test_pipe_with_any_forbidden_address_is_refused(tenant: Tenant, alice: User, a_spec: MakeSpec):
    for number, url in enumerate(FORMS):
        with pytest.raises(SpecError):
            create_pipe(tenant=tenant, name=f"inside-{number}", spec=a_spec(crm=url), author=alice)
    assert not Pipe.objects.exists()


def test_revision_with_any_forbidden_address_is_refused(pipe: Pipe, alice: User, a_spec: MakeSpec):
    for url in FORMS:
        with pytest.raises(SpecError):
            publish_revision(pipe=pipe, spec=a_spec(crm=url), based_on=1, author=alice)
    assert PipeRevision.objects.count() == 1


def test_forbidden_token_url_is_refused(tenant: Tenant, alice: User, a_spec: MakeSpec):
    spec = a_spec()
    auth = {"type": "oauth2", "token_url": "https://169.254.169.254/latest", "client_id": "c"}
    spec["destinations"]["crm"] |= {"auth": auth}
    with pytest.raises(SpecError, match=r"destinations\.crm\.auth\.token_url: needs a public address"):
        create_pipe(tenant=tenant, name="inside", spec=spec, author=alice)


def test_forbidden_address_of_a_bucket_is_refused(tenant: Tenant, alice: User, a_spec: MakeSpec):
    spec = a_spec()
    spec["destinations"]["crm"] = {
        "type": "s3",
        "url": "http://169.254.169.254/bucket",
        "region": "auto",
        "access_key_id": "k",
    }
    with pytest.raises(SpecError, match=r"destinations\.crm\.url: needs a public address"):
        create_pipe(tenant=tenant, name="inside", spec=spec, author=alice)


@pytest.mark.parametrize(
    ("fields", "field", "needed"),
    [
        ({"host": "169.254.169.254"}, "host", "needs a public address"),
        ({"host": "0x7f000001"}, "host", "needs a public address"),
        ({"host": "localhost"}, "host", "needs a public address"),
        ({"host": "::1"}, "host", "needs a public address"),
        ({"host": "postgres"}, "host", "needs a public host name"),
        ({"port": 6379}, "port", "needs a port that is used for Postgres"),
        ({"sslmode": "disable"}, "sslmode", "needs verify-full"),
    ],
)
def test_forbidden_database_is_refused(
    tenant: Tenant, alice: User, a_spec: MakeSpec, settings: Settings, fields: dict[str, str], field: str, needed: str
):
    settings.PRODUCTION = True
    to = {"type": "postgres", "host": "db.example.com", "database": "shop", "user": "w", "table": "t"} | fields
    spec = a_spec() | {"destinations": {"rows": to}}
    with pytest.raises(SpecError, match=rf"destinations\.rows\.{field}: {needed}"):
        create_pipe(tenant=tenant, name="inside", spec=spec, author=alice)


def test_https_is_required_outside_development(tenant: Tenant, alice: User, a_spec: MakeSpec, settings: Settings):
    settings.PRODUCTION = True
    with pytest.raises(SpecError, match="needs https"):
        create_pipe(tenant=tenant, name="plain", spec=a_spec(crm="http://example.com/"), author=alice)


@pytest.mark.parametrize("url", ["https://in.penstock.example/v1/events", "https://IN.penstock.example:443/"])
def test_own_ingest_is_refused_as_a_destination(
    url: str, tenant: Tenant, alice: User, a_spec: MakeSpec, settings: Settings
):
    settings.PENSTOCK_OWN_INGEST = parse_endpoints("https://in.penstock.example")
    with pytest.raises(SpecError, match="own ingest"):
        create_pipe(tenant=tenant, name="round", spec=a_spec(crm=url), author=alice)
    assert not Pipe.objects.exists()


def test_api_names_the_field_with_the_forbidden_address(
    client_of: MakeClient, tenant: Tenant, alice: User, a_spec: MakeSpec
):
    answer = client_of(alice).post("/api/v1/pipes/", {"name": "inside", "spec": a_spec(crm="http://2130706433/")})
    body = answer.json()
    assert (answer.status_code, body["code"]) == (422, "destination-forbidden")
    assert body["errors"][0]["pointer"] == "#/spec/destinations/crm/url"


def test_lake_root_must_be_one_of_the_platforms_stores(
    tenant: Tenant, alice: User, a_spec: MakeSpec, settings: Settings
):
    settings.PENSTOCK_LAKES = ("s3a://ours/lake", "file:///srv/lake")
    for root, number in ((None, 1), ("file:///srv/lake", 2)):
        spec = a_spec() | {"destinations": {"store": {"type": "lake", "root": root}}}
        create_pipe(tenant=tenant, name=f"kept-{number}", spec=spec, author=alice)
    spec = a_spec() | {"destinations": {"store": {"type": "lake", "root": "file:///srv/lake/other"}}}
    with pytest.raises(SpecError, match=r"store\.root: needs one of the platform's stores, s3a://ours/lake"):
        create_pipe(tenant=tenant, name="beside", spec=spec, author=alice)
