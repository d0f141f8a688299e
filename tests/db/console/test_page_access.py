"""Access by membership and role: viewers read, editors change, owners close, other tenants find nothing."""

import pytest
from django.test import Client
from django.urls import reverse

from mgmt.models import ApiKey, Pipe, User
from mgmt.services import create_api_key
from tests.db.console.truth import BrowserOf, Truth

READING = ["pipe", "attempts", "patterns", "replays", "revisions", "settings", "shadows", "tail"]
pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", READING)
def test_viewer_reads_each_tab_of_a_pipe(browser_of: BrowserOf, viewer: User, truth: Truth, name: str):
    assert browser_of(viewer).get(reverse(f"console:{name}", args=[truth.pipe.id])).status_code == 200


def test_viewer_reads_home_and_a_minute(browser_of: BrowserOf, viewer: User, truth: Truth, bucket: int):
    assert browser_of(viewer).get("/").status_code == 200
    url = reverse("console:minute", args=[truth.pipe.id, bucket])
    assert browser_of(viewer).get(url, {"bin": "lost"}).status_code == 200


@pytest.mark.parametrize("name", [*READING, "edit_pipe", "close_pipe"])
def test_other_tenant_gets_404_for_a_pipe(browser_of: BrowserOf, charlie: User, pipe: Pipe, name: str):
    answer = browser_of(charlie).get(reverse(f"console:{name}", args=[pipe.id]))
    assert answer.status_code == 404
    assert pipe.name not in answer.content.decode()


def test_404_is_the_same_for_another_tenants_pipe_and_an_unknown_one(browser_of: BrowserOf, charlie: User, pipe: Pipe):
    browser = browser_of(charlie)
    there, nowhere = browser.get(f"/pipes/{pipe.id}/"), browser.get("/pipes/pipe_00000000000000000000/")
    assert (there.status_code, there.content) == (nowhere.status_code, nowhere.content)


def test_other_tenant_sees_an_empty_home(browser_of: BrowserOf, charlie: User, truth: Truth):
    assert truth.pipe.name not in browser_of(charlie).get("/").content.decode()


def test_user_without_a_tenant_gets_home_and_no_new_pipe(browser_of: BrowserOf, django_user_model: type[User]):
    browser = browser_of(django_user_model.objects.create_user("dora"))
    assert browser.get("/").status_code == 200
    assert browser.get("/pipes/new/").status_code == 404


@pytest.mark.parametrize("name", [*READING, "edit_pipe", "close_pipe"])
def test_anonymous_user_is_redirected_to_sign_in(client: Client, pipe: Pipe, name: str):
    url = reverse(f"console:{name}", args=[pipe.id])
    answer = client.get(url)
    assert (answer.status_code, answer["Location"]) == (302, f"/sign-in/?next={url}")


@pytest.mark.parametrize("name", ["edit_pipe", "close_pipe"])
def test_viewer_gets_403_with_the_required_role(browser_of: BrowserOf, viewer: User, pipe: Pipe, name: str):
    answer = browser_of(viewer).get(reverse(f"console:{name}", args=[pipe.id]))
    assert answer.status_code == 403
    assert "you are viewer" in answer.content.decode()


def test_viewer_cannot_create_a_pipe_key_or_secret(browser_of: BrowserOf, viewer: User, pipe: Pipe):
    browser = browser_of(viewer)
    assert browser.get("/pipes/new/").status_code == 403
    assert browser.post(reverse("console:create_key", args=[pipe.id]), {"source": "shop"}).status_code == 403
    assert browser.post(reverse("console:rotate_secret", args=[pipe.id, "crm"])).status_code == 403
    assert not ApiKey.objects.exists()


def test_viewer_is_shown_no_button_that_answers_403(browser_of: BrowserOf, viewer: User, pipe: Pipe):
    create_api_key(source=pipe.sources.get())
    browser = browser_of(viewer)
    pages = [browser.get(url).content.decode() for url in ("/", f"/pipes/{pipe.id}/", f"/pipes/{pipe.id}/settings/")]
    for word in ("New pipe", "/edit/", "/close/", "New key", "Revoke", "New secret"):
        assert not any(word in page for page in pages), word


def test_editor_edits_and_cannot_close(browser_of: BrowserOf, bob: User, pipe: Pipe):
    browser = browser_of(bob)
    page = browser.get(f"/pipes/{pipe.id}/").content.decode()
    assert "/edit/" in page
    assert "/close/" not in page
    assert browser.get(reverse("console:edit_pipe", args=[pipe.id])).status_code == 200
    assert browser.post(reverse("console:close_pipe", args=[pipe.id]), {"typed": pipe.name}).status_code == 403


def test_post_without_a_csrf_token_is_refused(alice: User, pipe: Pipe):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    answer = browser.post(
        reverse("console:close_pipe", args=[pipe.id]), {"typed": pipe.name}, headers={"hx-request": "true"}
    )
    assert answer.status_code == 403
    pipe.refresh_from_db()
    assert pipe.state == "active"


def test_pages_forbid_framing_and_foreign_scripts(browser_of: BrowserOf, alice: User, pipe: Pipe):
    answer = browser_of(alice).get(f"/pipes/{pipe.id}/")
    policy = answer["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer["Cache-Control"] == "no-store"
