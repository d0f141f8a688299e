"""Which room answers which path."""

from django.contrib import admin
from django.urls import include, path

from config.echo import echo
from config.health import livez, readyz

urlpatterns = [
    path("livez", livez, name="livez"),
    path("readyz", readyz, name="readyz"),
    path("echo/", echo, name="echo"),
    path("admin/", admin.site.urls),
    path("api/v1/", include("mgmt.api.urls")),
    path("", include("mgmt.console.urls")),
]

handler400 = "mgmt.api.handlers.bad_request"
handler404 = "mgmt.api.handlers.not_found"
handler500 = "mgmt.api.handlers.server_error"
