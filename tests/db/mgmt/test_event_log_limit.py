"""Reads of the event log take page threads, so only a few run at a time."""

from contextlib import ExitStack

import pytest
from rest_framework.test import APIClient

from mgmt.messages import event_views
from mgmt.models import Pipe, User
from tests.db.cast import MakeClient

pytestmark = pytest.mark.django_db


def test_read_beyond_the_limit_is_refused_at_once_and_may_be_repeated(pipe: Pipe, alice: User, client_of: MakeClient):
    client: APIClient = client_of(alice)
    client.raise_request_exception = False
    with ExitStack() as others:
        while event_views._READS.acquire(blocking=False):
            others.callback(event_views._READS.release)
        answer = client.get(f"/api/v1/pipes/{pipe.id}/events/")
    assert (answer.status_code, answer.json()["code"]) == (503, "busy")
    assert int(answer["Retry-After"]) > 0
    assert client.get(f"/api/v1/pipes/{pipe.id}/events/", {"after": "none"}).json()["code"] == "parameter-invalid"
