"""The address of each curl command on a page exists in the API, for the same user with the same rights."""

import html
import re
import shlex
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from mgmt.delivery_tests.services import request_destination_test
from mgmt.models import DeadLetter, DestinationTest, Pipe, User
from tests.db.cast import MakeClient
from tests.db.console.truth import BrowserOf, go_live
from tests.db.console.undelivered import open_alert, store_dead

pytestmark = pytest.mark.django_db
SHOWN = re.compile(r'id="as-curl"[^>]*><code>(.*?)</code>', re.DOTALL)


def pages(pipe: Pipe) -> list[str]:
    """Return every page that shows its action as a curl command."""
    letter, alert = DeadLetter.objects.earliest("id"), pipe.alerts.get()
    of_pipe = (
        "pipe",
        "attempts",
        "revisions",
        "settings",
        "edit_pipe",
        "dead",
        "held",
        "replays",
        "new_replay",
        "shadows",
        "tail",
    )
    return [
        "/",
        "/tokens/",
        "/pipes/new/",
        *(reverse(f"console:{name}", args=[pipe.id]) for name in of_pipe),
        reverse("console:minute", args=[pipe.id, 29384711]),
        reverse("console:usage"),
        reverse("console:schema", args=[pipe.id, "shop"]),
        reverse("console:destination", args=[pipe.id, "crm"]),
        reverse("console:destination_test", args=[DestinationTest.objects.get().id]),
        reverse("console:delivery", args=[pipe.id, "crm"]),
        reverse("console:dead_letter", args=[pipe.id, letter.id]),
        reverse("console:redrive", args=[pipe.id]) + "?destination=crm",
        reverse("console:release", args=[pipe.id]) + "?destination=crm",
        reverse("console:alert", args=[pipe.id, alert.id]),
        reverse("console:alerts"),
        reverse("console:channels"),
    ]


def test_api_has_every_address_shown_as_curl(browser_of: BrowserOf, client_of: MakeClient, alice: User, pipe: Pipe):
    go_live(pipe)
    now = timezone.now()
    store_dead(pipe, range(2), now - timedelta(minutes=1))
    open_alert(pipe, now)
    request_destination_test(destination=pipe.destinations.get(), event=b"{}", by=alice, now=now)
    browser, api = browser_of(alice), client_of(alice)
    for url in pages(pipe):
        [shown] = SHOWN.findall(browser.get(url).content.decode())
        command = html.unescape(shown)
        path = shlex.split(command)[4].split("/api/v1/")[1]
        answer = api.options(f"/api/v1/{path}")
        assert answer.status_code != 404, (url, command)
        if "-d " not in command:
            assert api.get(f"/api/v1/{path}").status_code == 200, (url, command)
