"""The API as a client program uses it: create, publish, read, paginate; no secret is returned twice."""

import pytest
import structlog
from pytest_django import DjangoAssertNumQueries, Settings
from rest_framework.test import APIClient

from mgmt.models import Membership, Pipe, Tenant, User
from mgmt.services import add_member, create_api_key, create_pipe, create_tenant, rotate_signing_secret
from tests.db.cast import MakeClient, MakeSpec


@pytest.fixture
def api(alice: User, tenant: Tenant, client_of: MakeClient) -> APIClient:
    client: APIClient = client_of(alice)
    return client


def test_pipe_is_created_read_renamed_closed_and_reopened(api: APIClient, a_spec: MakeSpec):
    made = api.post("/api/v1/pipes/", {"name": "orders", "spec": a_spec()})
    assert made.status_code == 201
    path = made["Location"]
    assert made.json() == api.get(path).json()
    assert made.json() | {"state": "active", "live_revision": None, "newest_revision": 1} == made.json()
    assert api.patch(path, {"name": "sales"}).json()["name"] == "sales"
    assert [api.post(path + verb).json()["state"] for verb in ("close/", "close/", "reopen/")] == [
        "closed",
        "closed",
        "active",
    ]


def test_revision_is_published_if_based_on_the_newest_and_refused_otherwise(
    api: APIClient, pipe: Pipe, a_spec: MakeSpec
):
    path = f"/api/v1/pipes/{pipe.id}/revisions/"
    body = {"spec": a_spec(crm="https://new.example.com/"), "based_on": 1}
    made = api.post(path, body)
    assert (made.status_code, made.json()["number"], made.json()["author"]) == (201, 2, "alice")
    assert api.get(made["Location"]).json() == made.json()
    late = api.post(path, body)
    assert (late.status_code, late.json()["code"]) == (409, "revision-conflict")
    assert api.post(path, body | {"based_on": 9}).json()["errors"][0]["pointer"] == "#/based_on"
    assert [r["number"] for r in api.get(path).json()["results"]] == [2, 1]


def test_execution_is_published_read_and_changed_back(api: APIClient, pipe: Pipe, a_spec: MakeSpec):
    path = f"/api/v1/pipes/{pipe.id}/revisions/"
    made = api.post(path, {"spec": a_spec() | {"execution": "bulk"}, "based_on": 1})
    assert made.status_code == 201
    read = api.get(made["Location"]).json()["spec"]
    assert read["execution"] == "bulk"
    back = api.post(path, {"spec": read | {"execution": "streaming"}, "based_on": 2})
    assert back.status_code == 201
    diff = api.get(f"{path}3/diff/").json()["lines"]
    assert [line["text"].strip(" ,") for line in diff if line["kind"] == "gone"] == ['"execution": "bulk"']
    bulk = a_spec() | {"execution": "bulk"}
    bulk["destinations"]["crm"]["ordered"] = True
    for spec in (bulk, a_spec() | {"execution": "spark"}):
        refused = api.post(path, {"spec": spec, "based_on": 3})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "#/spec/execution")


def test_api_key_is_shown_once_and_revoked_permanently(api: APIClient, pipe: Pipe):
    path = f"/api/v1/pipes/{pipe.id}/keys/"
    made = api.post(path, {"source": "shop", "label": "laptop"})
    assert made.status_code == 201
    assert made["Cache-Control"] == "no-store"
    key = made.json()["key"]
    listed = api.get(path)
    assert key not in listed.content.decode()
    assert listed.json()["results"][0]["prefix"] == key[:12]
    revoked = [api.post(f"{path}{made.json()['id']}/revoke/").json()["revoked_at"] for _ in range(2)]
    assert revoked[0] is not None
    assert revoked[0] == revoked[1]


def test_sources_list_their_ingest_url(api: APIClient, pipe: Pipe, settings: Settings):
    sources = api.get(f"/api/v1/pipes/{pipe.id}/sources/").json()
    assert [(s["name"], s["url"]) for s in sources] == [("shop", f"{settings.PENSTOCK_INGEST_URL}/v1/events")]


def test_rotated_secret_is_shown_once(api: APIClient, pipe: Pipe):
    path = f"/api/v1/pipes/{pipe.id}/destinations/crm/"
    answer = api.post(path + "rotate-secret/")
    assert answer["Cache-Control"] == "no-store"
    assert answer.json()["secret"].startswith("whsec_")
    assert answer.json()["destination"] == api.get(path).json()
    assert api.get(path).json()["signing_secrets"] == 2


def test_responses_contain_no_secret(api: APIClient, pipe: Pipe):
    key, plaintext = create_api_key(source=pipe.sources.get())
    destination, secret = rotate_signing_secret(destination=pipe.destinations.get())
    tails = ["", "revisions/", "revisions/1/", "sources/", "keys/", "destinations/", "destinations/crm/"]
    text = "".join(api.get(f"/api/v1/pipes/{pipe.id}/{tail}").content.decode() for tail in tails)
    assert key.prefix in text
    for hidden in (plaintext, secret, key.digest, *destination.secrets, "whsec_", "gAAAA"):
        assert hidden not in text


def test_me_returns_the_users_tenants_and_roles(bob: User, tenant: Tenant, client_of: MakeClient):
    answer = client_of(bob).get("/api/v1/me/").json()
    assert answer == {
        "username": "bob",
        "tenants": [{"id": tenant.id, "name": "Alice's", "role": "editor"}],
        "token": None,
    }


def test_member_of_two_tenants_must_name_the_tenant(alice: User, tenant: Tenant, api: APIClient, a_spec: MakeSpec):
    second = create_tenant(name="Second", owner=alice)
    body = {"name": "orders", "spec": a_spec()}
    assert api.post("/api/v1/pipes/", body).json()["errors"][0]["pointer"] == "#/tenant"
    assert api.post("/api/v1/pipes/", body | {"tenant": second.id}).json()["tenant"] == second.id


def test_pages_have_no_gaps_and_no_repeats(api: APIClient, alice: User, tenant: Tenant, a_spec: MakeSpec):
    made = [create_pipe(tenant=tenant, name=f"p{n}", spec=a_spec(), author=alice).id for n in range(7)]
    seen, lengths, url = [], [], "/api/v1/pipes/?limit=3"
    while url:
        page = api.get(url).json()
        seen += [p["id"] for p in page["results"]]
        lengths.append(len(page["results"]))
        url = page["next"]
    assert (seen, lengths) == (made[::-1], [3, 3, 1])


# Three are for the session, the user and the request count; one more for the pipe where the path names it.
QUERIES = {
    "": 4,
    "{pipe}/": 5,
    "{pipe}/revisions/": 5,
    "{pipe}/sources/": 5,
    "{pipe}/keys/": 5,
    "{pipe}/destinations/": 5,
}


@pytest.mark.parametrize("path", QUERIES)
def test_list_query_count_does_not_grow_with_rows(
    path: str,
    api: APIClient,
    alice: User,
    tenant: Tenant,
    a_spec: MakeSpec,
    django_assert_num_queries: DjangoAssertNumQueries,
):
    spec = a_spec(**{f"d{n}": f"https://d{n}.example.com/" for n in range(5)})
    pipes = [create_pipe(tenant=tenant, name=f"p{n}", spec=spec, author=alice) for n in range(5)]
    for _ in range(5):
        create_api_key(source=pipes[0].sources.get())
    with django_assert_num_queries(QUERIES[path]):
        assert api.get("/api/v1/pipes/" + path.format(pipe=pipes[0].id)).status_code == 200


def test_basic_auth_is_accepted_like_a_session(alice: User, tenant: Tenant):
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=_basic("alice", "alice's long password"))
    assert client.get("/api/v1/me/").json()["username"] == "alice"


def test_right_password_is_throttled_after_ten_wrong_ones(alice: User, tenant: Tenant):
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=_basic("alice", "wrong"))
    answers = [client.get("/api/v1/me/") for _ in range(11)]
    assert [a.status_code for a in answers] == [401] * 10 + [429]
    client.credentials(HTTP_AUTHORIZATION=_basic("alice", "alice's long password"))
    assert client.get("/api/v1/me/").status_code == 429


def test_new_member_sees_the_tenants_pipes_at_once(pipe: Pipe, tenant: Tenant, charlie: User, client_of: MakeClient):
    assert client_of(charlie).get("/api/v1/pipes/").json()["results"] == []
    add_member(tenant=tenant, user=charlie, role=Membership.Role.VIEWER)
    assert [p["id"] for p in client_of(charlie).get("/api/v1/pipes/").json()["results"]] == [pipe.id]
    assert Pipe.objects.count() == 1


def _basic(name: str, password: str) -> str:
    from base64 import b64encode

    return "Basic " + b64encode(f"{name}:{password}".encode()).decode()


def test_post_without_trailing_slash_remains_a_post(api: APIClient, a_spec: MakeSpec):
    answer = api.post("/api/v1/pipes", {"name": "orders", "spec": a_spec()}, follow=True)
    assert (answer.status_code, answer.json()["name"]) == (201, "orders")


def test_logs_name_the_action_and_no_secret(api: APIClient, pipe: Pipe):
    with structlog.testing.capture_logs() as lines:
        key = api.post(f"/api/v1/pipes/{pipe.id}/keys/", {"source": "shop"}).json()["key"]
        secret = api.post(f"/api/v1/pipes/{pipe.id}/destinations/crm/rotate-secret/").json()["secret"]
    assert [line["event"] for line in lines] == ["key created", "request", "signing secret rotated", "request"]
    assert key not in str(lines)
    assert secret not in str(lines)
