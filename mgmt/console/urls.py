"""Routes of the console."""

from django.urls import path

from mgmt.console.views import attempts, causes, delivery, destination, edit, home, pipe, settings, sign_in

app_name = "console"
urlpatterns = [
    path("", home.home, name="home"),
    path("sign-in/", sign_in.sign_in, name="sign_in"),
    path("sign-in/<str:token>/", sign_in.sign_in_by_link, name="sign_in_by_link"),
    path("sign-out/", sign_in.sign_out, name="sign_out"),
    path("theme/", sign_in.switch_theme, name="switch_theme"),
    path("tenant/", sign_in.switch_tenant, name="switch_tenant"),
    path("help/causes/", causes.causes, name="causes"),
    path("help/causes/<slug:code>/", causes.cause, name="cause"),
    path("pipes/new/", edit.new_pipe, name="new_pipe"),
    path("pipes/<str:pipe_id>/", pipe.overview, name="pipe"),
    path("pipes/<str:pipe_id>/attempts/", attempts.attempts, name="attempts"),
    path("pipes/<str:pipe_id>/messages/<str:position>/", attempts.message, name="message"),
    path("pipes/<str:pipe_id>/destinations/<str:name>/", destination.destination, name="destination"),
    path("pipes/<str:pipe_id>/destinations/<str:name>/delivery/", delivery.delivery, name="delivery"),
    path("pipes/<str:pipe_id>/revisions/", pipe.revisions, name="revisions"),
    path("pipes/<str:pipe_id>/minutes/<int:bucket>/", pipe.minute, name="minute"),
    path("pipes/<str:pipe_id>/edit/", edit.edit_pipe, name="edit_pipe"),
    path("pipes/<str:pipe_id>/close/", edit.close_pipe, name="close_pipe"),
    path("pipes/<str:pipe_id>/reopen/", edit.reopen_pipe, name="reopen_pipe"),
    path("pipes/<str:pipe_id>/settings/", settings.settings, name="settings"),
    path("pipes/<str:pipe_id>/keys/", settings.create_key, name="create_key"),
    path("pipes/<str:pipe_id>/keys/<str:key_id>/revoke/", settings.revoke_key, name="revoke_key"),
    path("pipes/<str:pipe_id>/destinations/<str:name>/secret/", settings.rotate_secret, name="rotate_secret"),
]
