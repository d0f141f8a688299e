"""What the views share: the signed-in user, and checked bodies."""

from typing import Any

from rest_framework.request import Request
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from mgmt.models import User


class View(APIView):
    """A view of the API for signed-in users (settings.REST_FRAMEWORK)."""

    @property
    def user(self) -> User:
        """The user; the permission class let nobody else in."""
        user = self.request.user
        assert isinstance(user, User)  # noqa: S101 for the type checker
        return user


def body_of(request: Request, shape: type[BaseSerializer[Any]]) -> dict[str, Any]:
    """The request's body, checked. Raises ValidationError."""
    serializer = shape(data=request.data)
    serializer.is_valid(raise_exception=True)
    checked: dict[str, Any] = serializer.validated_data
    return checked
