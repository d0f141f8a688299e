"""URLs of the web process. `/livez` and `/readyz` are answered by its front (config.front.app)."""

from django.contrib import admin
from django.urls import include, path

from mgmt.console.views.sign_in import change_password, staff_sign_in

urlpatterns = [
    path("admin/login/", staff_sign_in),
    path("admin/password_change/", change_password),
    path("admin/", admin.site.urls),
    path("api/v1/", include("mgmt.api.urls")),
    path("", include("mgmt.console.urls")),
]

handler400 = "mgmt.api.handlers.bad_request"
handler404 = "mgmt.api.handlers.not_found"
handler500 = "mgmt.api.handlers.server_error"
