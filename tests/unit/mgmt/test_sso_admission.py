"""Admission of identities that sign in by single sign-on, as a table."""

from typing import Any

import pytest

from mgmt.sso.admission import IdentityFacts, KnownAccount, SsoOutcome, SsoRefused, decide

MEMBER = KnownAccount(is_active=True, is_staff=False, is_member=True)
LEFT = MEMBER._replace(is_member=False)
NOBODY = IdentityFacts("ada@acme.example", (), None, is_address_of_member=False, is_invited=False, joins_freely=False)


@pytest.mark.parametrize(
    ("facts", "admission"),
    [
        pytest.param({"account": MEMBER}, SsoOutcome.SIGN_IN, id="linked member"),
        pytest.param({"account": MEMBER, "email": ""}, SsoOutcome.SIGN_IN, id="linked member without an address"),
        pytest.param({"account": MEMBER, "is_address_of_member": True}, SsoOutcome.SIGN_IN, id="link before address"),
        pytest.param({"account": LEFT, "is_invited": True}, SsoOutcome.ACCEPT_INVITATION, id="removed, invited again"),
        pytest.param({"is_address_of_member": True}, SsoOutcome.LINK, id="address of a member"),
        pytest.param({"is_address_of_member": True, "joins_freely": True}, SsoOutcome.LINK, id="no second account"),
        pytest.param({"is_invited": True}, SsoOutcome.CREATE, id="invited"),
        pytest.param({"joins_freely": True}, SsoOutcome.CREATE, id="anyone"),
        pytest.param({"joins_freely": True, "email": ""}, SsoOutcome.CREATE, id="anyone without an address"),
        pytest.param({"joins_freely": True, "domains": ("acme.example",)}, SsoOutcome.CREATE, id="allowed domain"),
    ],
)
def test_identity_is_admitted(facts: dict[str, Any], admission: SsoOutcome):
    assert decide(NOBODY._replace(**facts)) is admission


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        pytest.param({}, "invited", id="neither invited nor free to join"),
        pytest.param({"account": LEFT, "joins_freely": True}, "no longer a member", id="removed"),
        pytest.param({"account": MEMBER._replace(is_active=False)}, "closed", id="closed account"),
        pytest.param({"account": MEMBER._replace(is_staff=True)}, "staff", id="staff"),
        pytest.param({"account": MEMBER, "domains": ("bank.example",)}, "bank.example", id="domain of a linked member"),
        pytest.param({"joins_freely": True, "domains": ("x.example",), "email": ""}, "no e-mail address", id="none"),
        pytest.param({"joins_freely": True, "domains": ("example",)}, "accepts only", id="parent domain"),
        pytest.param({"joins_freely": True, "domains": ("a.acme.example",)}, "accepts only", id="subdomain"),
    ],
)
def test_identity_is_refused_with_what_to_do(facts: dict[str, Any], words: str):
    with pytest.raises(SsoRefused, match=words):
        decide(NOBODY._replace(**facts))
