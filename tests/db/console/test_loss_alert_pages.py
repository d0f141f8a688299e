"""The home page, the pipe's pages and the API show an alert about lost messages and its threshold."""

import pytest

from dataplane.ledger.units import format_position, position_of
from mgmt.models import Alert, Pipe, User
from tests.db.cast import MakeClient
from tests.db.console.truth import BrowserOf, Truth, go_live
from tests.db.controlplane.test_loss_alerts import lose


@pytest.fixture
def truth(pipe: Pipe) -> Truth:
    go_live(pipe)
    pipe.refresh_from_db()
    return Truth(pipe)


def test_pages_show_the_loss_and_set_the_threshold(
    truth: Truth, browser_of: BrowserOf, client_of: MakeClient, alice: User
):
    lose(truth, [7], list(range(7)))
    browser, pipe = browser_of(alice), truth.pipe
    alert = Alert.objects.get()
    link = f"/pipes/{pipe.id}/alerts/{alert.id}/"
    home = browser.get("/").content.decode()
    assert link in home
    assert "1 lost" in home
    overview = browser.get(f"/pipes/{pipe.id}/").content.decode()
    assert link in overview
    assert "12.5 % end to end" in overview
    page = browser.get(link).content.decode()
    for text in ("Loss by node", "transmit:crm", "12.5 %", format_position(position_of(1, 0, 7)), "transform:crm"):
        assert text in page
    browser.post(f"/pipes/{pipe.id}/loss-threshold/", {"percent": "1.5"})
    assert client_of(alice).get(f"/api/v1/pipes/{pipe.id}/").json()["loss_threshold_percent"] == 1.5
    assert 'value="1.5"' in browser.get(f"/pipes/{pipe.id}/settings/").content.decode()
    answer = client_of(alice).patch(f"/api/v1/pipes/{pipe.id}/", {"loss_threshold_percent": 2}, format="json")
    assert (answer.status_code, answer.json()["loss_threshold_percent"]) == (200, 2)
    assert client_of(alice).patch(f"/api/v1/pipes/{pipe.id}/", {}, format="json").status_code == 400


def test_viewer_of_another_tenant_cannot_set_the_threshold(truth: Truth, browser_of: BrowserOf, charlie: User):
    answer = browser_of(charlie).post(f"/pipes/{truth.pipe.id}/loss-threshold/", {"percent": "5"})
    assert answer.status_code == 404
    truth.pipe.refresh_from_db()
    assert truth.pipe.loss_threshold_percent == 0
