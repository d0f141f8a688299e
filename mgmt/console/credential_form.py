"""The secret of a destination's credentials: written, never read back."""

from collections.abc import Sequence
from typing import Final

from django import forms

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

    def __init__(self, needed: Sequence[str], data: dict[str, str] | None = None) -> None:
        super().__init__(data, auto_id="credential_%s")
        for name in needed:
            widget: forms.Widget = forms.PasswordInput(_TEXT)
            if name in _LONG:
                widget = forms.Textarea(_TEXT | {"rows": 5, "autocomplete": "off"})
            self.fields[name] = forms.CharField(label=_LABELS[name], widget=widget)
