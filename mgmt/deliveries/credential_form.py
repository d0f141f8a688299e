"""Form for the secrets of a destination. They are stored and never shown again."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django import forms
from django.http import QueryDict

from mgmt.errors import NeededCredential

PREFIX: Final = "credential."  # of field names: one page may ask for the credentials of several destinations
_NAME: Final = re.compile(rf"{re.escape(PREFIX)}([a-z0-9-]+)-([a-z_]+)")
_LABELS: Final = {
    "value": "Secret value",
    "password": "Password",
    "client_secret": "Client secret",
    "certificate": "Certificate (PEM)",
    "key": "Private key (PEM)",
    "secret_access_key": "Secret access key",
}
_LONG: Final = ("certificate", "key")
_TEXT: Final = {"class": "form-control", "autocomplete": "new-password", "spellcheck": "false"}


class CredentialForm(forms.Form):
    """One field for each secret that the destination's auth type needs; posted values are not rendered."""

    def __init__(self, needed: Sequence[str], data: dict[str, str] | None = None, *, prefix: str | None = None) -> None:
        super().__init__(data, auto_id="credential_%s", prefix=prefix)
        for name in needed:
            widget: forms.Widget = forms.PasswordInput(_TEXT)
            if name in _LONG:
                widget = forms.Textarea(_TEXT | {"rows": 5, "autocomplete": "off"})
            self.fields[name] = forms.CharField(label=_LABELS[name], widget=widget)


@dataclass(frozen=True)
class AskedCredential:
    """Destination whose credential must be entered again, with the form for it."""

    needed: NeededCredential
    form: CredentialForm


def asked_credentials(needed: Sequence[NeededCredential]) -> list[AskedCredential]:
    """Return empty forms for the credentials that must be entered again."""
    return [AskedCredential(one, CredentialForm(one.fields, prefix=f"{PREFIX}{one.destination}")) for one in needed]


def posted_credentials(post: QueryDict) -> Mapping[str, Mapping[str, str]]:
    """Return the posted credentials as {destination: {field: value}}, without empty fields."""
    found: dict[str, dict[str, str]] = {}
    for name, value in post.items():
        if isinstance(value, str) and value and (parts := _NAME.fullmatch(name)):
            found.setdefault(parts[1], {})[parts[2]] = value
    return found
