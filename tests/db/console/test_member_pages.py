"""Members, invitation links, and the staff page of tenants."""

import re
from datetime import timedelta

import pytest
from django.core import mail
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from mgmt.models import Invitation, Membership, Tenant, User
from mgmt.services import add_member, create_tenant
from mgmt.tenancy.pages.invitations import LINKS
from tests.db.cast import MakeClient
from tests.db.console.truth import BrowserOf

pytestmark = pytest.mark.django_db
PASSWORD = "violet giraffe 81 kettle"


@pytest.fixture
def staff(browser_of: BrowserOf) -> Client:
    return browser_of(User.objects.create_user("sam", is_staff=True))


def link() -> str:
    """Return the path of the link in the newest e-mail."""
    found = re.search(r"https?://[^/]+(/invitations/\S+)", str(mail.outbox[-1].body))
    assert found
    return found[1]


def test_owner_invites_and_a_new_person_signs_up(alices: Client, tenant: Tenant, client: Client):
    page = alices.post("/members/", {"email": "ada@example.com", "as_role": "operator"}, follow=True)
    assert "We sent an invitation to ada@example.com." in page.text
    assert "Join Alice&#x27;s" in client.get(link()).text
    answer = client.post(link(), {"username": "ada", "password": PASSWORD}, follow=True)
    assert "You are now a member of Alice&#x27;s." in answer.text
    assert User.objects.get(username="ada").memberships.get().role == "operator"
    assert "penstock_device" in client.cookies
    members = alices.get("/members/").text
    assert ("ada@example.com" in members, "No pending invitations." in members) == (True, True)


def test_existing_user_joins_after_sign_in(alices: Client, tenant: Tenant, charlie: User, client: Client):
    User.objects.filter(pk=charlie.pk).update(email="charlie@example.com")
    alices.post("/members/", {"email": "charlie@example.com", "as_role": "viewer"})
    page = client.get(link()).text
    assert f"/sign-in/?next={link()}" in page
    assert "Create account" not in page
    client.force_login(charlie)
    assert "Join as charlie" in client.get(link()).text
    assert tenant not in charlie.tenants.all()  # the GET changes nothing
    assert client.post(link(), follow=True).text.count("You are now a member") == 1
    assert tenant in charlie.tenants.all()


def test_refused_sign_up_keeps_the_name_and_shows_the_reason(alices: Client, tenant: Tenant, client: Client):
    alices.post("/members/", {"email": "ada@example.com", "as_role": "viewer"})
    answer = client.post(link(), {"username": "ada", "password": "short"})
    assert (answer.status_code, 'value="ada"' in answer.text) == (422, True)
    assert "too short" in answer.text


@pytest.mark.parametrize("spoil", ["revoke", "expire", "accept", "forge"])
def test_link_that_is_not_valid_is_refused(
    alices: Client, tenant: Tenant, charlie: User, browser_of: BrowserOf, client: Client, spoil: str
):
    alices.post("/members/", {"email": "ada@example.com", "as_role": "owner"})
    row, path = Invitation.objects.get(), link()
    if spoil == "revoke":
        alices.post("/members/", {"revoke": row.id})
    elif spoil == "expire":
        Invitation.objects.update(expires_at=row.sent_at - timedelta(seconds=1))
    elif spoil == "accept":
        browser_of(charlie).post(path)
    else:
        path = "/invitations/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/"
    for answer in (client.get(path), client.post(path, {"username": "ada", "password": PASSWORD})):
        assert answer.status_code == 404
        assert "This invitation is not valid" in answer.text
    assert not User.objects.filter(username="ada").exists()


def test_guesses_of_links_are_limited(client: Client, db: None):
    answers = [client.get(f"/invitations/guess{n}/").status_code for n in range(LINKS.most + 1)]
    assert answers == [404] * LINKS.most + [429]


def test_owner_changes_roles_resends_and_removes(alices: Client, tenant: Tenant, bob: User):
    alices.post("/members/", {"role": "bob", "new_role": "operator"})
    assert bob.memberships.get().role == "operator"
    alices.post("/members/", {"email": "ada@example.com", "as_role": "viewer"})
    alices.post("/members/", {"resend": Invitation.objects.get().id})
    assert len(mail.outbox) == 2
    alices.post("/members/", {"remove": "bob"})
    assert not bob.memberships.exists()


def test_last_owner_cannot_leave(alices: Client, tenant: Tenant, alice: User):
    page = alices.post("/members/", {"leave": "yes"}, follow=True)
    assert "A tenant needs an owner." in page.text
    assert alice.memberships.exists()


def test_member_leaves(browser_of: BrowserOf, tenant: Tenant, bob: User):
    assert "You left Alice&#x27;s." in browser_of(bob).post("/members/", {"leave": "yes"}, follow=True).text
    assert not bob.memberships.exists()


@pytest.mark.parametrize(
    "action",
    [
        {"email": "ada@example.com", "as_role": "owner"},
        {"role": "alice", "new_role": "viewer"},
        {"remove": "alice"},
        {"resend": "inv_0"},
        {"revoke": "inv_0"},
    ],
    ids=lambda action: next(iter(action)),
)
def test_only_owners_manage_members(browser_of: BrowserOf, tenant: Tenant, bob: User, action: dict[str, str]):
    browser = browser_of(bob)
    assert browser.post("/members/", action).status_code == 403
    assert (Invitation.objects.count(), tenant.memberships.count()) == (0, 2)
    page = browser.get("/members/").text
    assert "Send invitation" not in page
    assert "Owners can invite" in page


def test_members_of_another_tenant_are_not_found(alices: Client, tenant: Tenant, charlie: User):
    for action in ({"role": "charlie", "new_role": "viewer"}, {"remove": "charlie"}, {"revoke": "inv_0"}):
        assert alices.post("/members/", action).status_code == 404
    assert charlie.memberships.get().role == "owner"


def test_api_manages_members_and_invitations(client_of: MakeClient, alice: User, bob: User, tenant: Tenant):
    api, base = client_of(alice), f"/api/v1/tenants/{tenant.id}"
    made = api.post(f"{base}/invitations/", {"email": "ada@example.com", "role": "viewer"})
    assert (made.status_code, made.json()["mail_error"], made.json()["is_expired"]) == (201, "", False)
    assert api.post(f"{base}/invitations/", {"email": "ada@example.com", "role": "viewer"}).status_code == 409
    again = api.post(f"{base}/invitations/{made.json()['id']}/resend/")
    assert (again.status_code, len(mail.outbox)) == (200, 2)
    assert [one["email"] for one in api.get(f"{base}/invitations/").json()] == ["ada@example.com"]
    assert api.delete(f"{base}/invitations/{made.json()['id']}/").status_code == 204
    assert api.get(f"{base}/invitations/").json() == []
    assert api.patch(f"{base}/members/bob/", {"role": "viewer"}).json()["role"] == "viewer"
    last = api.delete(f"{base}/members/alice/")
    assert (last.status_code, last.json()["code"]) == (409, "last-owner")
    assert client_of(bob).delete(f"{base}/members/bob/").status_code == 204  # leaves
    assert api.delete(f"{base}/members/bob/").status_code == 404


def test_staff_create_a_tenant_with_one_form(staff: Client, client: Client):
    page = staff.post("/staff/tenants/", {"name": "Acme", "owner_email": "ada@example.com"}, follow=True)
    assert "We invited ada@example.com as owner of Acme." in page.text
    client.post(link(), {"username": "ada", "password": PASSWORD})
    assert User.objects.get(username="ada").memberships.get().role == "owner"
    assert Tenant.objects.get(name="Acme").mask_salt


def test_refused_tenant_keeps_what_was_typed(staff: Client):
    answer = staff.post("/staff/tenants/", {"name": "Acme", "owner_email": "ada"})
    assert (answer.status_code, 'value="Acme"' in answer.text, Tenant.objects.count()) == (422, True, 0)
    assert "E-mail: Needs an e-mail address." in answer.text


def test_staff_invite_an_owner_of_a_tenant_that_has_lost_its_own(staff: Client, charlie: User):
    User.objects.filter(pk=charlie.pk).update(is_active=False)
    tenant = charlie.tenants.get()
    assert "Invite owner" in staff.get("/staff/tenants/").text
    wrong = staff.post("/staff/tenants/", {"tenant": tenant.id, "owner_email": "x"})
    assert (wrong.status_code, "Invite an owner" in wrong.text) == (422, True)
    staff.post("/staff/tenants/", {"tenant": tenant.id, "owner_email": "grace@example.com"})
    assert tenant.invitations.get().role == "owner"
    assert staff.post("/staff/tenants/", {"tenant": "ten_0", "owner_email": "x@example.com"}).status_code == 404


def test_admin_makes_no_tenants_and_no_memberships(client: Client, tenant: Tenant):
    client.force_login(User.objects.create_superuser("root"))
    assert client.get("/admin/mgmt/tenant/add/").status_code == 403
    assert "/staff/tenants/" in client.get("/admin/mgmt/tenant/").text
    page = client.get(f"/admin/mgmt/tenant/{tenant.id}/change/")
    assert (page.status_code, "Save" in page.text) == (200, False)
    assert client.post(f"/admin/mgmt/tenant/{tenant.id}/change/", {"name": "x"}).status_code == 403


@pytest.mark.parametrize("path", ["/members/", "/staff/tenants/"])
def test_query_count_does_not_grow_with_the_rows(browser_of: BrowserOf, alice: User, tenant: Tenant, path: str):
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    browser = browser_of(alice)
    browser.post("/members/", {"email": "ada@example.com", "as_role": "viewer"})
    counts = []
    for number in range(3):
        user = User.objects.create_user(f"user{number}")
        add_member(tenant=tenant, user=user, role=Membership.Role.VIEWER)
        browser.post("/members/", {"email": f"ada{number}@example.com", "as_role": "viewer"})
        create_tenant(name=f"tenant {number}", owner=user)
        browser.get("/")  # shows the messages
        with CaptureQueriesContext(connection) as done:
            assert browser.get(path).status_code == 200
        counts.append(len(done))
    assert len(set(counts)) == 1
