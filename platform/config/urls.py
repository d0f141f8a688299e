"""URLs of the web process. `/livez` and `/readyz` are answered by its front (config.front.app)."""

from django.contrib import admin
from django.urls import include, path

from mgmt.tenancy.pages.sign_in import change_password, staff_sign_in

urlpatterns = [
    path("admin/login/", staff_sign_in),
    path("admin/password_change/", change_password),
    path("admin/", admin.site.urls),
    path("api/v1/", include("mgmt.api_urls")),
    path("registry/", include("mgmt.registry_urls")),
    path("registry/<row_id:tenant>/", include("mgmt.registry_urls", namespace="tenant_registry")),
    path("", include("mgmt.page_urls")),
]

handler400 = "mgmt.web.handlers.bad_request"
handler404 = "mgmt.web.handlers.not_found"
handler500 = "mgmt.web.handlers.server_error"
