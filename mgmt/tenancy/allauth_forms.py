"""Forms of django-allauth with Penstock's rules and words. Settings name these classes."""

from typing import Any

from allauth.account.forms import ChangePasswordForm
from allauth.core import context
from allauth.mfa.webauthn.forms import AddWebAuthnForm
from django import forms
from django.contrib.auth import authenticate


class LimitedChangePasswordForm(ChangePasswordForm):  # type: ignore[misc]
    """Password change whose check of the current password counts against the limits of sign-in."""

    def clean_oldpassword(self) -> str:
        """Check the current password in the authentication backend."""
        password: str = self.cleaned_data["oldpassword"]
        user = authenticate(context.request, username=self.user.get_username(), password=password)
        if user is None or user.pk != self.user.pk:
            raise forms.ValidationError("The current password is wrong, or there were too many attempts. Wait a while.")
        return password


class PasskeyForm(AddWebAuthnForm):  # type: ignore[misc]
    """New passkey, which signs in without a password unless the user chooses otherwise."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("initial", {}).setdefault("passwordless", True)
        super().__init__(*args, **kwargs)
        choice = self.fields["passwordless"]
        choice.label = "Sign in without a password"
        choice.help_text = "The device then asks for your fingerprint, face or PIN. Older security keys cannot do this."
