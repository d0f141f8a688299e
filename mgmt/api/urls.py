"""Routes of the REST API."""

from django.urls.resolvers import URLPattern, URLResolver

app_name = "api"
urlpatterns: list[URLPattern | URLResolver] = []
