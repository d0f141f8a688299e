"""The secret of a destination's credentials: written, never read back."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django import forms
from django.http import QueryDict

from mgmt.services.errors import NeededCredential

PREFIX: Final = "credential."  # of the fields of a page that may ask for several destinations' credentials
_NAME: Final = re.compile(rf"{re.escape(PREFIX)}([a-z0-9-]+)-([a-z_]+)")
_LABELS: Final = {
    "value": "Secret value",
    "password": "Password",
    "client_secret": "Client secret",
    "certificate": "Certificate, PEM",
    "key": "Private key, PEM",
}
_LONG: Final = ("certificate", "key")
_TEXT: Final = {"class": "form-control", "autocomplete": "new-password", "spellcheck": "false"}


class CredentialForm(forms.Form):
    """One field for each part that the destination's auth needs; what was typed is not shown again."""

    def __init__(self, needed: Sequence[str], data: dict[str, str] | None = None, *, prefix: str | None = None) -> None:
        super().__init__(data, auto_id="credential_%s", prefix=prefix)
        for name in needed:
            widget: forms.Widget = forms.PasswordInput(_TEXT)
            if name in _LONG:
                widget = forms.Textarea(_TEXT | {"rows": 5, "autocomplete": "off"})
            self.fields[name] = forms.CharField(label=_LABELS[name], widget=widget)


@dataclass(frozen=True)
class AskedCredential:
    """A destination whose credential a page asks for again, with its fields."""

    needed: NeededCredential
    form: CredentialForm


def asked_credentials(needed: Sequence[NeededCredential]) -> list[AskedCredential]:
    """The fields for credentials that must be entered again, empty."""
    return [AskedCredential(one, CredentialForm(one.fields, prefix=f"{PREFIX}{one.destination}")) for one in needed]


def posted_credentials(post: QueryDict) -> Mapping[str, Mapping[str, str]]:
    """What was typed into these fields, by destination; what was left empty is not there."""
    found: dict[str, dict[str, str]] = {}
    for name, value in post.items():
        if isinstance(value, str) and value and (parts := _NAME.fullmatch(name)):
            found.setdefault(parts[1], {})[parts[2]] = value
    return found
