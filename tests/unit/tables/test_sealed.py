"""A secret opens only for the row and field for which it was sealed."""

import pytest
from cryptography.fernet import Fernet

from dataplane.spec import HttpDestination
from dataplane.tables.records import DestinationRecord
from dataplane.tables.sealed import bind, credential_place, opener, signing_place, unbind
from dataplane.transmit.http.secrets import open_secrets

SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"


def test_secret_opens_only_for_its_own_row_and_field():
    text = bind("s", signing_place("p1", "crm"))
    assert unbind(text, signing_place("p1", "crm")) == "s"
    for other in (signing_place("p2", "crm"), signing_place("p1", "erp"), credential_place("p1", "crm")):
        with pytest.raises(ValueError, match="another row or field"):
            unbind(text, other)


def test_secret_from_before_the_binding_is_accepted_unchanged():
    assert unbind("whsec_x", signing_place("p1", "crm")) == "whsec_x"


def test_text_with_newlines_cannot_be_bound():
    with pytest.raises(ValueError, match="without newlines"):
        bind("a\nb", "p")


@pytest.mark.parametrize(("place", "is_locked"), [(("p1", "crm"), False), (("p2", "crm"), True)])
def test_lane_does_not_sign_with_a_secret_of_another_row(place: tuple[str, str], is_locked: bool):
    key = Fernet.generate_key()
    token = Fernet(key).encrypt(bind(SECRET, signing_place(*place)).encode()).decode()
    record = DestinationRecord("p1", "crm", 1, "active", HttpDestination(url="https://crm.example.com/"), [token])
    assert bool(open_secrets(record, opener((key.decode(),))).locked) is is_locked
