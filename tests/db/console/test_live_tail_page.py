"""Live tail page without a stream: steps that show messages, help if there are none, invalid filters."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from mgmt.models import Pipe, Topic, User
from mgmt.services import create_pipe
from tests.db.cast import MakeSpec
from tests.db.console.truth import BrowserOf, go_live

pytestmark = pytest.mark.django_db
STREAM: Any = {"HTTP_ACCEPT": "text/event-stream"}


@pytest.fixture
def url(pipe: Pipe) -> str:
    return reverse("console:tail", args=[pipe.id])


def peeking(pipe: Pipe, alice: User, a_spec: MakeSpec) -> str:
    spec = a_spec()
    spec["normalize"] = [{"op": "peek", "name": "raw", "share": 1}]
    spec["transform"] = {"crm": [{"op": "peek", "name": "for-crm", "share": 0.25}]}
    made = create_pipe(tenant=pipe.tenant, name="peeking", spec=spec, author=alice)
    return reverse("console:tail", args=[made.id])


def test_pipe_without_a_peek_step_shows_instructions(alices: Client, url: str):
    page = alices.get(url).content.decode()
    assert "This pipe has no <code>peek</code> step." in page
    assert "Add a peek step" in page


def test_viewer_is_referred_to_an_editor(browser_of: BrowserOf, viewer: User, url: str):
    assert "Add a peek step" not in browser_of(viewer).get(url).content.decode()


def test_page_lists_peek_steps_with_their_share(alices: Client, pipe: Pipe, alice: User, a_spec: MakeSpec):
    page = alices.get(peeking(pipe, alice, a_spec)).content.decode()
    assert "Step <code>raw</code> of normalize shows every message." in page
    assert "Sampled: step <code>for-crm</code> of transform:crm shows 25.0" in page


def test_invalid_filter_is_refused_with_its_position_and_kept_in_its_field(alices: Client, url: str):
    answer = alices.get(url, {"filter": "body.a >"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "line 1, column 9" in page
    assert 'value="body.a &gt;"' in page


def test_stream_with_an_invalid_filter_is_refused(alices: Client, pipe: Pipe, url: str):
    go_live(pipe)
    Topic.objects.create(cell_id="c1", purpose="tail", name="penstock.c1.tail.g1", topic_id="t", partitions=1)
    answer = alices.get(url, {"filter": "body.a >"}, **STREAM)
    assert (answer.status_code, answer["Content-Type"]) == (422, "text/plain")


def test_unplaced_pipe_has_no_stream_yet(alices: Client, url: str):
    assert alices.get(url, **STREAM).status_code == 503
    assert "Starts when the pipe has been deployed" in alices.get(url).content.decode()


def test_other_tenant_gets_no_stream(browser_of: BrowserOf, charlie: User, url: str):
    assert browser_of(charlie).get(url, **STREAM).status_code == 404
