"""URLs of the web process. `/livez` and `/readyz` are served by its front (config.front.app)."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from mgmt.tenancy.pages.sign_in import staff_sign_in

urlpatterns = [
    path("admin/login/", staff_sign_in),
    path("admin/password_change/", RedirectView.as_view(pattern_name="account_change_password")),
    path("admin/", admin.site.urls),
    path("api/v1/", include("mgmt.api_urls")),
    path("registry/", include("mgmt.registry_urls")),
    path("registry/<row_id:tenant>/", include("mgmt.registry_urls", namespace="tenant_registry")),
    # django-allauth; its own sign-in page and overview are replaced by the console's
    path("account/login/", RedirectView.as_view(pattern_name="console:sign_in", query_string=True)),
    path("account/mfa/", RedirectView.as_view(pattern_name="console:account")),
    path("account/", include("allauth.account.urls")),
    path("account/mfa/", include("allauth.mfa.urls")),
    path("account/sessions/", include("allauth.usersessions.urls")),
    path("", include("mgmt.page_urls")),
]

handler400 = "mgmt.web.handlers.bad_request"
handler404 = "mgmt.web.handlers.not_found"
handler500 = "mgmt.web.handlers.server_error"
