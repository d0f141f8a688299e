"""Routes of the wire API of Confluent's Schema Registry, without a slash at the end, as its clients request them.

A subject's name may contain slashes, which clients send as %2F. They arrive decoded, so longer routes come first.
"""

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from mgmt.registry.api import confluent as views


class SubjectName(StringConverter):
    """Path converter of a subject's name."""

    regex = r".+"


register_converter(SubjectName, "subject_name")

app_name = "registry"
_VERSION = "subjects/<subject_name:subject>/versions/<str:version>"
_CHECK = "compatibility/subjects/<subject_name:subject>/versions"
urlpatterns = [
    path("", views.RootView.as_view(), name="root"),
    path("subjects", views.SubjectNamesView.as_view(), name="subjects"),
    path(f"{_VERSION}/schema", views.VersionSchemaView.as_view(), name="version-schema"),
    path(f"{_VERSION}/referencedby", views.ReferencedByView.as_view(), name="referenced-by"),
    path(_VERSION, views.WireVersionView.as_view(), name="version"),
    path("subjects/<subject_name:subject>/versions", views.SubjectVersionsView.as_view(), name="versions"),
    path("subjects/<subject_name:subject>", views.SubjectLookUpView.as_view(), name="subject"),
    path("schemas/types", views.SchemaTypesView.as_view(), name="types"),
    path("schemas/ids/<int:number>", views.SchemaIdView.as_view(), name="schema"),
    path("schemas/ids/<int:number>/schema", views.SchemaIdTextView.as_view(), name="schema-text"),
    path("schemas/ids/<int:number>/versions", views.SchemaIdVersionsView.as_view(), name="schema-versions"),
    path("schemas/ids/<int:number>/subjects", views.SchemaIdSubjectsView.as_view(), name="schema-subjects"),
    path("config", views.DefaultConfigView.as_view(), name="default-config"),
    path("config/", views.DefaultConfigView.as_view()),  # some clients send the slash
    path("config/<subject_name:subject>", views.SubjectConfigView.as_view(), name="config"),
    path(f"{_CHECK}/<str:version>", views.CompatibilityView.as_view(), name="compatibility"),
    path(_CHECK, views.CompatibilityView.as_view(), name="compatibility-of-all"),
    path("mode", views.ModeView.as_view(), name="default-mode"),
    path("mode/<subject_name:subject>", views.ModeView.as_view(), name="mode"),
]
