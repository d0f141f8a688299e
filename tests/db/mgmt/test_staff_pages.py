"""The admin: every list opens for staff and nobody else, contains no secret and permits no deletion."""

import pytest
from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from mgmt.models import Pipe, PipeRevision, User
from mgmt.services import create_api_key

MODELS = sorted(admin.site._registry, key=lambda model: model.__name__)


@pytest.fixture
def staff(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("admin"))
    return client


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_list_opens(staff: Client, model: type[Model], pipe: Pipe):
    answer = staff.get(reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"))
    assert answer.status_code == 200


def test_rows_open_without_their_secrets(staff: Client, pipe: Pipe):
    key, _plaintext = create_api_key(source=pipe.sources.get())
    destination = pipe.destinations.get()
    pages = [
        staff.get(reverse(f"admin:mgmt_{row._meta.model_name}_change", args=[row.pk])).content.decode()
        for row in (pipe, pipe.revisions.get(), destination, key, pipe.tenant)
    ]
    for hidden in (key.digest, destination.secrets[0]):
        assert not any(hidden in page for page in pages)


def test_revision_cannot_be_changed_or_deleted(staff: Client, pipe: Pipe):
    revision = pipe.revisions.get()
    answers = [
        staff.post(reverse(f"admin:mgmt_piperevision_{action}", args=[revision.pk])) for action in ("change", "delete")
    ]
    assert [answer.status_code for answer in answers] == [403, 403]
    assert PipeRevision.objects.get() == revision


def test_environment_is_named_on_every_page(staff: Client):
    assert "development" in staff.get("/admin/").content.decode()


def test_customers_cannot_open_the_admin(alice: User, client: Client):
    client.force_login(alice)
    assert client.get("/admin/").status_code == 302


def test_staff_pages_show_our_logo(staff: Client):
    assert "penstock/mark" in staff.get("/admin/").content.decode()
