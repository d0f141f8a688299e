"""Customers whose events the brokers refuse to the web process are referred to the operator, without internals."""

import json
from typing import Any, NoReturn

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from mgmt.messages.pages import find
from mgmt.messages.queries.readers import ReadRightMissingError
from mgmt.models import Pipe, PipeRevision
from mgmt.pipes.queries import comparison
from mgmt.services import adopt_live_spec
from tests.db.cast import MakeSpec

pytestmark = pytest.mark.django_db
WORDS = "cannot be read: Penstock may not read its event log; contact the operator of this installation."


def refuse(*_: object, **__: object) -> NoReturn:
    raise ReadRightMissingError


def checked(text: str) -> None:
    assert WORDS in text
    for internal in ("kafka_access", "again in a minute"):
        assert internal not in text, "a customer has no such command, and another try does not help"


def test_comparison_refers_to_the_operator(
    alices: Client, api: APIClient, pipe: Pipe, a_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
):
    PipeRevision.objects.filter(pipe=pipe).update(state="ramping")
    assert adopt_live_spec(revision=pipe.revisions.get())
    monkeypatch.setattr(comparison, "newest_events", refuse)
    sent: dict[str, Any] = {"mode": "json", "action": "compare", "based_on": "1", "sample": "{}"}
    answer = alices.post(reverse("console:edit_pipe", args=[pipe.id]), sent | {"spec": json.dumps(a_spec())})
    checked(answer.content.decode())
    api.raise_request_exception = False
    refused = api.post(f"/api/v1/pipes/{pipe.id}/compare/", {"spec": a_spec()}, format="json")
    assert refused.status_code == 503
    checked(refused.json()["detail"])


def test_search_refers_to_the_operator(alices: Client, pipe: Pipe, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(find, "search_bodies", refuse)
    asked = {"pipe": pipe.id, "field": "n", "op": "is", "value": "1", "range": "1h"}
    checked(alices.get(reverse("console:find"), asked).content.decode())
