"""Customer portal: every attack on a portal link, and what a customer sees and does with one."""

import io
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from structlog.stdlib import ProcessorFormatter

from dataplane.spec import SpecError
from mgmt import services
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import AuditEntry, Destination, Membership, Pipe, PipeRevision, PortalLink, Redrive, Tenant, User
from mgmt.pipes.services.revisions import activate_removed
from mgmt.portal.pages import portal as portal_pages
from mgmt.tenancy.secrets import link_token_digest
from tests.db.cast import MakeClient, MakeSpec
from tests.db.console.truth import Truth, go_live, plain
from tests.db.console.undelivered import store_dead

pytestmark = pytest.mark.django_db
SITE = "https://app.example.com"
NEW_URL = "https://hooks.example.org/in"
ACTIONS = ("redrive", "pause", "resume", "url", "secret")
MakeLink = Callable[..., str]


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """The lines that the process logs."""
    handler = next(one for one in logging.getLogger().handlers if isinstance(one.formatter, ProcessorFormatter))
    assert isinstance(handler, logging.StreamHandler)
    stream, before = io.StringIO(), handler.stream
    handler.setStream(stream)
    yield stream
    handler.setStream(before)


@pytest.fixture
def shop(tenant: Tenant, alice: User, a_spec: MakeSpec) -> Pipe:
    """Pipe with two endpoints; crm has two dead letters."""
    spec = a_spec(crm="https://crm.example.com/in", other="https://other.example.com/secret-path")
    pipe = services.create_pipe(tenant=tenant, name="till-7", spec=spec, author=alice)
    go_live(pipe)
    now = timezone.now()
    for name, offset, reason in (("crm", 5, "rejected: no such path"), ("other", 6, "rejected: of another customer")):
        Truth(pipe, name).attempt(bucket_at(now), offset, "dead", status=404, reason=reason)
        store_dead(pipe, range(10 * offset, 10 * offset + 2), now, where=name)
    services.set_portal_origins(tenant=tenant, origins=[SITE], by=alice)
    return pipe


@pytest.fixture
def link(shop: Pipe, alice: User) -> MakeLink:
    """Factory of the paths of portal links to crm; `edit` permits everything."""

    def make(*, edit: bool = True, author: User = alice, **more: Any) -> str:
        permits = {"may_redrive": edit, "may_edit": edit} | more
        crm = shop.destinations.get(name="crm")
        _, token = services.create_portal_link(
            destination=crm, author=author, label="Acme", now=timezone.now(), **permits
        )
        return reverse("console:portal", args=[token])

    return make


def act(client: Client, path: str, action: str, **more: Any) -> Any:
    return client.post(path, {"action": action, "url": NEW_URL, **more})


def state_of(pipe: Pipe) -> tuple[Any, ...]:
    """Return everything that a portal could change."""
    rows = [(row.state, row.version, row.secrets) for row in Destination.objects.order_by("pipe", "name")]
    return rows, PipeRevision.objects.count(), Redrive.objects.count()


def test_customer_sees_the_endpoint_and_nothing_else_of_the_tenant(client: Client, link: MakeLink, shop: Pipe):
    answer = client.get(link())
    shown = plain(answer.text)
    assert "Your endpoint Events failed" in shown
    assert "https://crm.example.com/in" in shown
    assert "Redrive 2 events" in shown
    assert "Returned 404" in shown
    assert "Your last response HTTP/1.1 401 Unauthorized" in shown
    assert "<script>" not in answer.text
    assert shown.count("Redrive") == 1, "failed events of another endpoint are not shown"
    assert answer.text.count('<code class="clip"') == 1, "attempts of another endpoint are not shown"
    for secret in ("till-7", "alice", "other.example.com", "of another customer", "secret-path", shop.id, "Penstock"):
        assert secret not in answer.text.replace("penstock/tokens.css", ""), secret


def test_text_of_a_pause_names_no_member(client: Client, link: MakeLink, shop: Pipe, alice: User):
    services.pause_destination(destination=shop.destinations.get(name="crm"), by=alice)
    shown = client.get(link()).text
    assert "New events are kept" in shown
    assert "alice" not in shown


def test_customer_redrives_pauses_resumes_and_gets_a_secret_as_the_links_author(
    client: Client, link: MakeLink, shop: Pipe, alice: User
):
    path, crm = link(), shop.destinations.get(name="crm")
    assert act(client, path, "redrive", cause="rejected")["Location"] == f"{path}?done=redrive"
    assert (Redrive.objects.get().destination, Redrive.objects.get().total) == ("crm", 2)
    assert act(client, path, "pause")["Location"] == f"{path}?done=pause"
    crm.refresh_from_db()
    assert crm.state == "paused"
    assert "active again" in client.get(act(client, path, "resume")["Location"]).text
    assert "whsec_" in act(client, path, "secret").text
    assert "whsec_" not in client.get(path).text, "the secret is shown once"
    entries = AuditEntry.objects.filter(token_id__startswith="ptl_").order_by("id")
    assert {(one.actor, one.token_name, one.actor_kind) for one in entries} == {
        ("alice", "portal link for Acme", "token")
    }
    assert {one.action for one in entries} == {
        *("redrive.started", "destination.paused", "destination.resumed", "signing_secret.rotated")
    }


def test_customer_changes_the_url_of_this_endpoint_only(client: Client, link: MakeLink, shop: Pipe):
    assert act(client, link(), "url")["Location"].endswith("?done=url")
    spec = shop.revisions.latest("number").spec["destinations"]
    assert (spec["crm"]["url"], spec["other"]["url"]) == (NEW_URL, "https://other.example.com/secret-path")
    assert AuditEntry.objects.get(action="revision.published").token_name == "portal link for Acme"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/in",
        "https://169.254.169.254/latest",
        "http://[::1]:8800/",
        "https://user:pw@x.example.com/",
        "",
    ],
)
def test_forbidden_url_is_refused_as_in_the_editor(client: Client, link: MakeLink, shop: Pipe, url: str, settings: Any):
    settings.PENSTOCK_DESTINATION_ALLOW = ""
    answer = act(client, link(), "url", url=url)
    assert answer.status_code == 422
    assert "The URL" in plain(answer.text)
    assert shop.revisions.count() == 1


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"action": "redrive", "cause": "rejected\0"}, 409),
        ({"action": "redrive", "cause": "no such cause"}, 409),
        ({"action": "url", "url": f"https://hooks.example.org/{'a' * 3_000}"}, 422),
        ({"action": "url", "url": "https://hooks.example.org/\0"}, 422),
        ({"action": "\0"}, 403),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_odd_forms_change_nothing(client: Client, link: MakeLink, shop: Pipe, form: dict[str, str], status: int):
    before = state_of(shop)
    assert client.post(link(), form).status_code == status
    assert state_of(shop) == before


def test_session_of_the_console_has_no_effect(link: MakeLink, browser_of: Any, tenant: Tenant, bob: User):
    Tenant.objects.filter(id=tenant.id).update(require_mfa=True)
    assert browser_of(bob).get("/").status_code == 302, "the console needs a second factor"
    assert browser_of(bob).get(link()).status_code == 200


def test_failed_request_logs_its_route_without_the_token(
    link: MakeLink, monkeypatch: pytest.MonkeyPatch, log: io.StringIO
):
    def fail(*_: object) -> None:
        raise OperationalError("the server is away")

    path = link()
    monkeypatch.setattr(portal_pages, "portal_link_of_token", fail)
    Client(raise_request_exception=False).get(path)
    assert "the server is away" in log.getvalue()
    assert "/portal/<str:token>/" in log.getvalue()
    assert path.split("/")[2] not in log.getvalue()


def test_refused_form_of_an_invitation_logs_its_route_without_the_token(log: io.StringIO):
    assert Client(enforce_csrf_checks=True).post("/invitations/s3cret/").status_code == 403
    assert "/invitations/<str:token>/" in log.getvalue()
    assert "s3cret" not in log.getvalue()


def test_url_is_not_changed_while_another_revision_ramps(client: Client, link: MakeLink, shop: Pipe, alice: User):
    spec = shop.revisions.get().spec | {"normalize": [{"op": "remove", "path": "note"}]}
    services.publish_revision(pipe=shop, spec=spec, based_on=1, author=alice)
    answer = act(client, link(), "url")
    assert (answer.status_code, shop.revisions.count()) == (409, 2)
    assert "Your provider is changing this endpoint" in answer.text


def test_address_that_has_the_same_url_publishes_nothing(client: Client, link: MakeLink, shop: Pipe):
    assert act(client, link(), "url", url="https://crm.example.com/in").status_code == 409
    assert shop.revisions.count() == 1


@pytest.mark.parametrize("action", ACTIONS)
def test_link_that_only_shows_changes_nothing(client: Client, link: MakeLink, shop: Pipe, action: str):
    path, before = link(edit=False), state_of(shop)
    answer = act(client, path, action, may_edit="1", may_redrive="1")
    assert (answer.status_code, state_of(shop)) == (403, before)
    assert "Redrive 2 events" not in client.get(f"{path}?may_redrive=1&may_edit=1").text


@pytest.mark.parametrize("action", ["pause", "url", "secret"])
def test_link_that_may_redrive_cannot_edit(client: Client, link: MakeLink, shop: Pipe, action: str):
    path, before = link(may_edit=False, may_redrive=True), state_of(shop)
    assert (act(client, path, action).status_code, state_of(shop)) == (403, before)


@pytest.mark.parametrize(
    "more",
    [{"destination": "other"}, {"name": "other"}, {"cause": "", "destination": "other"}, {"pipe": "x", "pipe_id": "x"}],
)
def test_changed_destination_in_a_form_has_no_effect(client: Client, link: MakeLink, shop: Pipe, more: dict[str, str]):
    path = link()
    for action in ACTIONS:
        client.post(f"{path}?destination=other", {"action": action, "url": NEW_URL, **more})
    other = shop.destinations.get(name="other")
    assert (other.state, other.config["url"], len(other.secrets)) == (
        *("active", "https://other.example.com/secret-path"),
        1,
    )
    assert not Redrive.objects.filter(destination="other").exists()


def closed(path: str, client: Client, shop: Pipe) -> tuple[int, str]:
    """Return the status and text of a closed link, after a check that no action works."""
    before = state_of(shop)
    assert {act(client, path, action).status_code for action in ACTIONS} <= {404, 410}
    assert state_of(shop) == before
    answer = client.get(path)
    assert "crm.example.com" not in answer.text
    return answer.status_code, plain(answer.text)


def test_unknown_and_changed_tokens_open_nothing(client: Client, link: MakeLink, shop: Pipe):
    path = link()
    for wrong in (f"{path[:-2]}/", f"{path[:-1]}x/", "/portal/none/", f"/portal/{PortalLink.objects.get().id}/"):
        assert closed(wrong, client, shop)[0] == 404
    assert closed(f"/portal/{PortalLink.objects.get().digest}/", client, shop)[0] == 404, "a digest is not a token"


def test_expired_link_asks_to_reload_the_page_of_the_provider(client: Client, link: MakeLink, shop: Pipe):
    path = link()
    PortalLink.objects.update(expires_at=timezone.now())
    status, text = closed(path, client, shop)
    assert (status, "This link has expired Reload the page of your provider" in text) == (410, True)


def test_revoked_links_open_nothing(
    client: Client, link: MakeLink, shop: Pipe, client_of: MakeClient, alice: User, charlie: User
):
    path = link()
    url = f"/api/v1/pipes/{shop.id}/destinations/crm/portal-links/"
    assert client_of(charlie).delete(url).status_code == 404
    assert client.get(path).status_code == 200
    assert client_of(alice).delete(url).data == {"revoked": 1}
    status, text = closed(path, client, shop)
    assert (status, "This link was revoked" in text) == (410, True)


def test_link_ends_with_its_authors_role(client: Client, link: MakeLink, shop: Pipe, bob: User):
    path = link(author=bob)
    assert client.get(path).status_code == 200
    Membership.objects.filter(user=bob).update(role="operator")
    assert closed(path, client, shop)[0] == 410, "an operator could not have permitted edits"
    Membership.objects.filter(user=bob).delete()
    assert closed(path, client, shop)[0] == 410


def test_other_site_cannot_post_for_a_visitor(link: MakeLink, shop: Pipe, alice: User):
    """Neither a session of the console nor a known address helps another site."""
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    path, before = link(), state_of(shop)
    for site in ("cross-site", "same-site", "none"):
        answer = browser.post(path, {"action": "pause"}, headers={"Sec-Fetch-Site": site})
        assert (answer.status_code, state_of(shop)) == (403, before), site
    assert browser.post("/portal/none/", {"action": "pause"}).status_code == 404
    assert browser.post(path, {"action": "pause"}, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 302


def test_portal_reads_and_sets_no_cookie(client: Client, link: MakeLink):
    path = link()
    for answer in (client.get(path), act(client, path, "pause"), client.get("/portal/none/")):
        assert not answer.cookies


def test_only_listed_sites_may_embed_the_portal(
    client: Client, link: MakeLink, shop: Pipe, alice: User, charlie: User, alices: Client
):
    path = link()

    def ancestors(url: str) -> tuple[str, str | None]:
        answer = client.get(url)
        (found,) = [one for one in answer["Content-Security-Policy"].split("; ") if "frame-ancestors" in one]
        return found.removeprefix("frame-ancestors "), answer.get("X-Frame-Options")

    assert ancestors(path) == (SITE, None)
    services.set_portal_origins(tenant=charlie.tenants.get(), origins=["https://evil.example.com"], by=charlie)
    assert ancestors(path) == (SITE, None), "sites of another tenant have no effect"
    for other in ("/portal/none/", "/sign-in/", "/catalogue/none/"):
        assert ancestors(other) == ("'none'", "DENY")
    assert "frame-ancestors 'none'" in alices.get("/portals/")["Content-Security-Policy"]
    PortalLink.objects.update(expires_at=timezone.now())
    assert ancestors(path)[0] == SITE, "the frame can say that the link expired"
    services.set_portal_origins(tenant=shop.tenant, origins=[], by=alice)
    assert ancestors(path) == ("'none'", "DENY")


def test_answers_keep_the_address_secret(client: Client, link: MakeLink):
    path = link()
    for answer in (client.get(path), act(client, path, "redrive"), client.get("/portal/none/")):
        headers = ("X-Robots-Tag", "Referrer-Policy", "Cache-Control")
        assert [answer[header] for header in headers] == ["noindex", "no-referrer", "no-store"]
    token = path.split("/")[-2]
    row = PortalLink.objects.values().get()
    assert row["digest"] == link_token_digest(token)
    assert token not in str(row)


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "https://*.example.com",
        "http://app.example.com",
        "https://app.example.com/path",
        "https://a.example.com; script-src *",
        "https://a.example.com,https://b.example.com",
        "'self'",
        "data:",
        "javascript:x",
        "app.example.com",
    ],
)
def test_origin_that_is_not_one_https_site_is_refused(tenant: Tenant, alice: User, origin: str):
    with pytest.raises(services.InvalidValue):
        services.set_portal_origins(tenant=tenant, origins=[origin], by=alice)
    assert Tenant.objects.get(id=tenant.id).portal_origins == []


def test_page_lists_links_and_owners_set_the_sites(
    alices: Client, link: MakeLink, shop: Pipe, browser_of: Any, bob: User
):
    link()
    shown = plain(alices.get("/portals/").text)
    assert "Acme till-7: crm view, redrive, edit" in shown
    assert browser_of(bob).post("/portals/", {"origins": ""}).status_code == 403
    assert alices.post("/portals/", {"origins": "https://x.example.com/path"}).status_code == 422
    assert alices.post("/portals/", {"origins": "https://X.example.com/\nhttp://localhost:3000"}).status_code == 302
    assert Tenant.objects.get(id=shop.tenant_id).portal_origins == ["https://x.example.com", "http://localhost:3000"]
    url = reverse("console:revoke_portal_links", args=[shop.id, "crm"])
    assert f'action="{url}"' in alices.get("/portals/").text
    assert "1 portal link of crm revoked." in plain(alices.post(url, follow=True).text)


def test_api_creates_a_link_within_the_role_of_its_author(
    client: Client, client_of: MakeClient, shop: Pipe, alice: User, bob: User
):
    url = f"/api/v1/pipes/{shop.id}/destinations/crm/portal-links/"
    made = client_of(alice).post(url, {"label": "Acme", "minutes": 30, "may_redrive": True, "accent": "#AA3300"})
    assert made.status_code == 201, made.data
    assert made["Cache-Control"] == "no-store"
    row = PortalLink.objects.get()
    assert timedelta(minutes=29) < row.expires_at - timezone.now() <= timedelta(minutes=30)
    path = "/" + made.data["url"].split("/", 3)[3]
    assert "border-top: 4px solid #aa3300" in client.get(path).text
    assert "url" not in client_of(alice).get(url).data[0]
    Membership.objects.filter(user=bob).update(role="operator")
    assert client_of(bob).post(url, {"label": "Acme", "may_edit": True}).status_code == 403
    assert client_of(bob).post(url, {"label": "Acme"}).status_code == 201
    for wrong in ({"minutes": 1441}, {"minutes": 0}, {"label": ""}, {"accent": "red;}"}, {"scope": "all"}):
        assert client_of(alice).post(url, {"label": "Acme", **wrong}).status_code == 400, wrong


def test_limits_are_those_of_the_destination_whatever_the_link(client: Client, link: MakeLink, shop: Pipe):
    """Each visit of the embedding page may create a link."""
    assert act(client, link(), "secret").status_code == 200
    answer = act(client, link(), "secret")  # would end the secret that receivers still use
    assert (answer.status_code, "There is a new secret already" in answer.text) == (429, True)
    codes = [act(client, link(), "url", url=f"https://hooks.example.org/{n % 2}").status_code for n in range(11)]
    assert 429 in codes[-1:]


def test_faults_elsewhere_in_the_spec_are_not_told(client: Client, link: MakeLink, monkeypatch: pytest.MonkeyPatch):
    def refuse(**_: Any) -> None:
        raise SpecError("$.destinations", "needs at most 5, which is your quota, got 9")

    monkeypatch.setattr(services, "change_endpoint_url", refuse)
    answer = act(client, link(), "url")
    assert (answer.status_code, "quota" in answer.text) == (409, False)


@pytest.mark.parametrize("action", ["url", "secret", "pause"])
def test_removed_destination_is_not_changed(client: Client, link: MakeLink, action: str):
    path = link()
    Destination.objects.filter(name="crm").update(state=Destination.State.REMOVED)
    assert act(client, path, action).status_code == 409


def test_link_of_a_removed_destination_does_not_open_a_later_one(client: Client, link: MakeLink, shop: Pipe):
    path = link()
    row = Destination.objects.get(name="crm")
    Destination.objects.filter(id=row.id).update(state=Destination.State.REMOVED)
    activate_removed(shop.id, {"crm": row.config})
    assert Destination.objects.get(id=row.id).state == Destination.State.ACTIVE
    assert client.get(path).status_code == 410


def test_too_many_requests_are_refused(client: Client, link: MakeLink, monkeypatch: pytest.MonkeyPatch):
    path = link()
    monkeypatch.setattr(portal_pages, "CHANGES", portal_pages.CHANGES._replace(most=1))
    assert [act(client, path, name).status_code for name in ("pause", "resume")] == [302, 429]
    monkeypatch.setattr(portal_pages, "VIEWS", portal_pages.VIEWS._replace(most=1))
    assert client.get(path).status_code == 429


def test_old_links_are_deleted_with_the_next_one(link: MakeLink):
    link()
    PortalLink.objects.update(expires_at=timezone.now() - timedelta(days=8))
    link()
    assert PortalLink.objects.count() == 1
