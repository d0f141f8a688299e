"""Second factors that a tenant or the operator requires: pages, API by session and API by password."""

import base64

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client
from pytest_django import Settings

from mgmt.models import Membership, Pipe, Tenant, User
from mgmt.services import add_member, make_sign_in_link
from tests.db.cast import MakeClient
from tests.db.console.truth import BrowserOf

pytestmark = pytest.mark.django_db
PASSWORD = "alice's long password"


def give_app(user: User) -> None:
    """Store an authenticator app; its secret is not used here."""
    Authenticator.objects.create(user=user, type=Authenticator.Type.TOTP, data={"secret": "x"})


@pytest.fixture
def strict(tenant: Tenant) -> Tenant:
    """Alice's tenant, whose members need a second factor."""
    Tenant.objects.filter(id=tenant.id).update(require_mfa=True)
    return tenant


def by_password(name: str = "alice") -> int:
    typed = "Basic " + base64.b64encode(f"{name}:{PASSWORD}".encode()).decode()
    answer = Client().get("/api/v1/me/", headers={"authorization": typed})
    if answer.status_code != 200:
        assert answer.json()["code"] == "second-factor-required"
        assert "API token" in answer.json()["detail"]
    return answer.status_code


@pytest.mark.parametrize("path", ["/", "/members/", "/usage/", "/pipes/{pipe}/", "/alerts/", "/go/", "/catalogue/x/"])
def test_member_without_a_second_factor_sees_only_the_account_page(
    browser_of: BrowserOf, bob: User, strict: Tenant, pipe: Pipe, path: str
):
    browser = browser_of(bob)
    answer = browser.get(path.format(pipe=pipe.id))
    assert (answer.status_code, answer["Location"]) == (302, "/account/")
    assert "Your account needs a second factor" in browser.get("/account/").text
    assert browser.get("/account/mfa/totp/activate/", follow=True).status_code == 200
    give_app(bob)
    assert browser.get("/").status_code == 200


def test_post_without_a_second_factor_changes_nothing(browser_of: BrowserOf, alice: User, strict: Tenant):
    assert browser_of(alice).post("/members/", {"remove": "bob"})["Location"] == "/account/"
    assert strict.memberships.count() == 2


def test_session_without_a_second_factor_gets_a_problem_from_the_api(client_of: MakeClient, bob: User, strict: Tenant):
    for path in ("/api/v1/me/", f"/api/v1/tenants/{strict.id}/members/", f"/registry/{strict.id}/subjects"):
        answer = client_of(bob).get(path)
        assert (answer.status_code, answer.json()["code"]) == (403, "second-factor-required")
    give_app(bob)
    assert client_of(bob).get("/api/v1/me/").status_code == 200


def test_password_alone_does_not_open_the_api_of_a_strict_tenant(alice: User, strict: Tenant):
    assert by_password() == 403
    give_app(alice)
    assert by_password() == 403  # the password is still alone
    Tenant.objects.update(require_mfa=False)
    assert by_password() == 403  # a second factor that the user chose is not bypassed, either
    Authenticator.objects.all().delete()
    assert by_password() == 200


def test_members_of_other_tenants_need_none(browser_of: BrowserOf, charlie: User, strict: Tenant):
    assert browser_of(charlie).get("/").status_code == 200
    add_member(tenant=strict, user=charlie, role=Membership.Role.VIEWER)
    assert browser_of(charlie).get("/").status_code == 302


def test_recovery_codes_alone_are_no_second_factor(browser_of: BrowserOf, bob: User, strict: Tenant):
    Authenticator.objects.create(user=bob, type=Authenticator.Type.RECOVERY_CODES, data={"seed": "x"})
    assert browser_of(bob).get("/").status_code == 302


def test_owner_turns_the_switch_only_with_an_own_second_factor(
    browser_of: BrowserOf, alice: User, bob: User, tenant: Tenant
):
    browser = browser_of(alice)
    page = browser.post("/members/", {"require_mfa": "yes"}, follow=True)
    assert "Set up a second factor for your own account first." in page.text
    give_app(alice)
    page = browser.post("/members/", {"require_mfa": "yes"}, follow=True)
    assert "Members now need a second factor." in page.text
    assert browser_of(bob).get("/").status_code == 302
    browser.post("/members/", {"require_mfa": "no"})
    assert browser_of(bob).get("/").status_code == 200
    assert browser_of(bob).post("/members/", {"require_mfa": "yes"}).status_code == 403
    assert not Tenant.objects.get(id=tenant.id).require_mfa


def test_staff_need_a_second_factor_if_the_operator_says_so(client: Client, settings: Settings, db: None):
    root = User.objects.create_superuser("root", password=PASSWORD)
    settings.PENSTOCK_STAFF_MFA = True
    client.get(make_sign_in_link(user=root, base_url=""))
    for path in ("/admin/", "/staff/", "/"):
        assert client.get(path)["Location"] == "/account/"
    assert by_password("root") == 403
    assert client.get("/account/").status_code == 200
    give_app(root)
    assert client.get("/admin/").status_code == 200


def test_staff_of_a_development_box_need_none(client: Client, settings: Settings, db: None):
    root = User.objects.create_superuser("root", password=PASSWORD)
    assert not settings.PENSTOCK_STAFF_MFA
    client.get(make_sign_in_link(user=root, base_url=""))
    assert client.get("/admin/").status_code == 200
    assert by_password("root") == 200


def test_customers_need_none_because_staff_do(alice: User, tenant: Tenant, settings: Settings):
    settings.PENSTOCK_STAFF_MFA = True
    assert by_password() == 200


def test_sign_out_and_theme_stay_open(browser_of: BrowserOf, bob: User, strict: Tenant):
    browser = browser_of(bob)
    assert browser.post("/theme/")["Location"] == "/"
    assert browser.post("/sign-out/")["Location"] == "/sign-in/"
