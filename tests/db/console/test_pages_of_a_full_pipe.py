"""A pipe with a lake, a topic, a look-up table and a window has every page that other pipes have."""

import pytest
from django.test import Client

from mgmt.pipes.services.demo import ensure_demo_tenant
from mgmt.pipes.services.full_demo import ensure_full_demo_pipe
from tests.db.console.truth import go_live

pytestmark = pytest.mark.django_db
TABS = ("", "attempts/", "dead/", "held/", "replays/", "replays/new/", "shadows/", "revisions/", "settings/", "edit/")


def test_every_tab_and_every_destination_has_its_page(client: Client):
    pipe = ensure_full_demo_pipe(url="http://127.0.0.1:8899/", name="demo")
    go_live(pipe)
    client.force_login(ensure_demo_tenant()[1])
    pages = [*TABS, *(f"destinations/{name}/" for name in ("lake", "feed", "receiver"))]
    answers = {page: client.get(f"/pipes/{pipe.id}/{page}").status_code for page in pages}
    assert answers == dict.fromkeys(pages, 200)
    assert 'title="lake"' in client.get(f"/pipes/{pipe.id}/").content.decode()
