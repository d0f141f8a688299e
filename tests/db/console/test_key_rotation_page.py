"""Rotation of an API key on the settings of a pipe."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from mgmt.models import ApiKey, Pipe, User
from mgmt.services import create_api_key
from tests.db.console.truth import BrowserOf, plain

pytestmark = pytest.mark.django_db


def test_rotated_key_is_shown_once_and_the_old_one_with_its_end(alices: Client, pipe: Pipe):
    old, _ = create_api_key(source=pipe.sources.get(), label="till")
    url = reverse("console:rotate_key", args=[pipe.id, old.id])
    page = alices.post(url, {"hours": "24"}).text
    new = ApiKey.objects.exclude(id=old.id).get()
    assert "shown only once" in page
    assert page.count(new.prefix) >= 3  # in the note, in the snippets and in the list
    old.refresh_from_db()
    assert old.expires_at is not None
    assert timedelta(hours=23) < old.expires_at - timezone.now() <= timedelta(hours=24)
    assert "active until" in plain(page)
    ApiKey.objects.filter(id=old.id).update(expires_at=timezone.now())
    page = plain(alices.get(reverse("console:settings", args=[pipe.id])).text)
    assert "expired" in page
    assert page.count("Rotate") == 1  # an expired key has no successor


def test_only_editors_rotate_and_an_ended_key_is_explained(
    browser_of: BrowserOf, alices: Client, viewer: User, charlie: User, pipe: Pipe
):
    key, _ = create_api_key(source=pipe.sources.get())
    url = reverse("console:rotate_key", args=[pipe.id, key.id])
    assert browser_of(viewer).post(url).status_code == 403
    assert browser_of(charlie).post(url).status_code == 404
    alices.post(url, {"hours": "0"})
    assert "does not work any more" in alices.post(url, follow=True).text
    assert ApiKey.objects.count() == 2
