"""A secret opens only where it was put."""

import pytest
from cryptography.fernet import Fernet

from dataplane.spec import HttpDestination
from dataplane.tables.records import DestinationRecord
from dataplane.tables.sealed import bind, credential_place, signing_place, unbind
from dataplane.transmit.secrets import open_secrets, opener

SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"


def test_a_secret_comes_back_from_its_own_place_only():
    text = bind("s", signing_place("p1", "crm"))
    assert unbind(text, signing_place("p1", "crm")) == "s"
    for other in (signing_place("p2", "crm"), signing_place("p1", "erp"), credential_place("p1", "crm")):
        with pytest.raises(ValueError, match="another place"):
            unbind(text, other)


def test_a_secret_from_before_places_were_bound_is_taken_as_it_is():
    assert unbind("whsec_x", signing_place("p1", "crm")) == "whsec_x"


def test_more_than_a_line_cannot_be_bound():
    with pytest.raises(ValueError, match="one line"):
        bind("a\nb", "p")


@pytest.mark.parametrize(("place", "is_locked"), [(("p1", "crm"), False), (("p2", "crm"), True)])
def test_a_lane_does_not_sign_with_a_secret_of_another_place(place: tuple[str, str], is_locked: bool):
    key = Fernet.generate_key()
    token = Fernet(key).encrypt(bind(SECRET, signing_place(*place)).encode()).decode()
    record = DestinationRecord("p1", "crm", 1, "active", HttpDestination(url="https://crm.example.com/"), [token])
    assert bool(open_secrets(record, opener((key.decode(),))).locked) is is_locked
