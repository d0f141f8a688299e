"""Django's settings, all from the environment. In production nothing secret has a default."""

import os
import secrets
import sys
from pathlib import Path
from typing import Any

import environ
from csp.constants import NONCE, NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from django.templatetags.static import static

from config.logs import logging_config
from config.proxies import parse_proxies
from dataplane import addresses
from dataplane.kafka_settings import kafka_settings
from dataplane.spec.clusters import parse_clusters
from dataplane.spec.kafka_security import KafkaSettingsError
from dataplane.spec.loops import parse_endpoints
from dataplane.spec.storage import parse_lakes
from dataplane.tables.quotas import parse_quotas

BASE_DIR = Path(__file__).resolve().parents[2]
env = environ.Env()

PENSTOCK_VAR = Path(env.str("PENSTOCK_VAR", str(BASE_DIR / "var"))).absolute()
PENSTOCK_ENV = env.str("PENSTOCK_ENV", "development")
if PENSTOCK_ENV not in ("development", "production"):
    raise ImproperlyConfigured(f"PENSTOCK_ENV: needs development or production, got {PENSTOCK_ENV!r}")
PRODUCTION = PENSTOCK_ENV == "production"
if not PRODUCTION and (PENSTOCK_VAR / "secrets.env").is_file():
    environ.Env.read_env(PENSTOCK_VAR / "secrets.env")  # written once by the box; the environment wins

# -- secrets: without them production does not start; development gets keys that last as long as the process
SECRET_KEY = env.str("PENSTOCK_SECRET_KEY", "")
PENSTOCK_FERNET_KEYS: list[str] = env.list("PENSTOCK_FERNET_KEYS", default=[])
if PRODUCTION and not (SECRET_KEY and PENSTOCK_FERNET_KEYS):
    raise ImproperlyConfigured("PENSTOCK_SECRET_KEY and PENSTOCK_FERNET_KEYS must be set when PENSTOCK_ENV=production")
SECRET_KEY = SECRET_KEY or secrets.token_urlsafe(50)

# -- addresses
PENSTOCK_WEB_HOST = env.str("PENSTOCK_WEB_HOST", "127.0.0.1")
PENSTOCK_WEB_PORT = env.int("PENSTOCK_WEB_PORT", addresses.WEB_PORT)
PENSTOCK_WEB_URL = env.str("PENSTOCK_WEB_URL", addresses.DEFAULT_WEB).rstrip("/")
PENSTOCK_INGEST_URL = env.str("PENSTOCK_INGEST_URL", addresses.DEFAULT_INGEST).rstrip("/")
# No default in production: only the operator knows by which public address lanes reach the echo (dataplane.echo).
PENSTOCK_ECHO_URL = env.str("PENSTOCK_ECHO_URL", "" if PRODUCTION else addresses.DEFAULT_ECHO)
# Table queries (dataplane.table_queries): the address for customers, and those that this process uses.
PENSTOCK_TABLES_URL = env.str("PENSTOCK_TABLES_URL", "" if PRODUCTION else addresses.DEFAULT_TABLES).rstrip("/")
PENSTOCK_TABLES_HOSTS: list[str] = [
    url.rstrip("/") for url in env.list("PENSTOCK_TABLES_HOSTS", default=[]) if url
] or [PENSTOCK_TABLES_URL] * bool(PENSTOCK_TABLES_URL)
ALLOWED_HOSTS: list[str] = env.list(
    "PENSTOCK_ALLOWED_HOSTS", default=[] if PRODUCTION else ["127.0.0.1", "localhost", "[::1]"]
)
CSRF_TRUSTED_ORIGINS = [PENSTOCK_WEB_URL]

# Networks of the proxies in front of the pages: X-Forwarded-* headers count only if they come from there.
PENSTOCK_TRUSTED_PROXIES = parse_proxies(env.str("PENSTOCK_TRUSTED_PROXIES", ""))
if PRODUCTION and not PENSTOCK_TRUSTED_PROXIES:
    raise ImproperlyConfigured(
        "PENSTOCK_TRUSTED_PROXIES: needs the networks of the proxies in front of the pages when "
        "PENSTOCK_ENV=production, such as 10.0.0.0/8; without them no request counts as https, and all clients have "
        "one address"
    )

# DEBUG stays off everywhere: it keeps every query in memory and shows settings on error pages.
DEBUG = False

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",  # for templates of allauth
    "csp",
    "django_htmx",
    "template_partials",
    "rest_framework",
    "drf_spectacular",
    "drf_standardized_errors",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.usersessions",
    "mgmt",
    "controlplane",
]

MIDDLEWARE = [
    "config.middleware.ClientAddress",
    "config.middleware.RequestId",
    "config.middleware.AuditOrigin",
    "config.middleware.RequestMetrics",
    "config.tracing.RequestTracing",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.middleware.ContentSecurityPolicy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "config.middleware.SlashAppending",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "config.middleware.RowScopeOfRequest",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "mgmt.web.sso_session.ConfineSsoSession",
    "mgmt.web.second_factor.RequireSecondFactor",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
            ],
        },
    },
]

# -- Postgres: a pool, because each of the front's and Celery's threads would otherwise keep its own connection
DATABASES: dict[str, dict[str, Any]] = {"default": env.db_url("DATABASE_URL", addresses.DEFAULT_DATABASE)}
# The engine applies row-level security: requests run as a role to which policies apply (docs/decisions/0109).
DATABASES["default"] |= {"ENGINE": "config.postgres"}
DATABASES["default"] |= {"CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": True, "ATOMIC_REQUESTS": False}
DATABASES["default"].setdefault("OPTIONS", {})
DATABASES["default"]["OPTIONS"] |= {
    "connect_timeout": 3,
    "application_name": "penstock",
    "pool": {"min_size": 0, "max_size": 16, "timeout": 3, "max_idle": 60},
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# -- Redis carries Celery's messages and nothing else: pages and sign-in work while it is away
REDIS_URL = env.str("REDIS_URL", addresses.DEFAULT_REDIS)
# Penstock's own limits are rows (mgmt.tenancy.services.rate_limits). Only django-allauth uses the cache: for its limits
# and for TOTP codes that were used. It is a table too, so that all processes count together and nothing is forgotten.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "mgmt_cache",
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}

# -- the control plane's part, read by controlplane.settings
PENSTOCK_KAFKA = env.str("PENSTOCK_KAFKA", addresses.DEFAULT_KAFKA)
try:
    kafka_settings()  # PENSTOCK_KAFKA_SETTINGS; an error at the start, not at the first client
except KafkaSettingsError as exc:
    raise ImproperlyConfigured(str(exc)) from exc
PENSTOCK_CELL_MASTER = env.str("PENSTOCK_CELL_MASTER", "local[16,1000]")
# process and transmit lanes share a machine, so each kind may use half of its cores
PENSTOCK_LANES_MAX = env.int("PENSTOCK_LANES_MAX", 0) or max(1, (os.cpu_count() or 1) // 2)
PENSTOCK_CELLS_MAX = env.int("PENSTOCK_CELLS_MAX", 1)
PENSTOCK_INGEST_MAX = env.int("PENSTOCK_INGEST_MAX", 0)
PENSTOCK_OWN_INGEST = parse_endpoints(
    f"127.0.0.1:{env.int('PENSTOCK_INGEST_PORT', addresses.INGEST_PORT)}",
    PENSTOCK_INGEST_URL,
    env.str("PENSTOCK_OWN_INGEST", ""),
)
PENSTOCK_DESTINATION_ALLOW = env.str("PENSTOCK_DESTINATION_ALLOW", "" if PRODUCTION else addresses.DEFAULT_ALLOW)
clusters_file = env.str("PENSTOCK_KAFKA_CLUSTERS", "")
PENSTOCK_LAKES = parse_lakes(env.str("PENSTOCK_LAKES", ""), env.str("PENSTOCK_VAR", "var"))
PENSTOCK_KAFKA_CLUSTERS = parse_clusters(Path(clusters_file).read_bytes()) if clusters_file else {}
PENSTOCK_GRACE_S = env.int("PENSTOCK_GRACE_S", 60)
PENSTOCK_FACTS_KEEP_D = env.int("PENSTOCK_FACTS_KEEP_D", 30)
PENSTOCK_SEALS_KEEP_D = env.int("PENSTOCK_SEALS_KEEP_D", 400)
PENSTOCK_ATTEMPTS_KEEP_H = env.int("PENSTOCK_ATTEMPTS_KEEP_H", 72)
PENSTOCK_AUDIT_KEEP_D = env.int("PENSTOCK_AUDIT_KEEP_D", 400)
PENSTOCK_FAILING_RATIO = env.float("PENSTOCK_FAILING_RATIO", 0.5)
PENSTOCK_FAILING_LEAST = env.int("PENSTOCK_FAILING_LEAST", 3)
PENSTOCK_RECOVERED_RATIO = env.float("PENSTOCK_RECOVERED_RATIO", 0.1)
PENSTOCK_RECOVERY_S = env.float("PENSTOCK_RECOVERY_S", 300)
PENSTOCK_WAITS_S = env.float("PENSTOCK_WAITS_S", 600)
PENSTOCK_ADMISSION_ABOVE = env.int("PENSTOCK_ADMISSION_ABOVE", 500)
PENSTOCK_ADMISSION_STEPS = env.str("PENSTOCK_ADMISSION_STEPS", "20,50,100")
PENSTOCK_RAMP_STEPS = env.str("PENSTOCK_RAMP_STEPS", "1,5,25,50,100")
PENSTOCK_RAMP_HOLD_S = env.float("PENSTOCK_RAMP_HOLD_S", 30)
PENSTOCK_RAMP_EVIDENCE = env.int("PENSTOCK_RAMP_EVIDENCE", 20)
PENSTOCK_RAMP_PATIENCE_S = env.float("PENSTOCK_RAMP_PATIENCE_S", 300)
PENSTOCK_PLACING_SHARD = env.int("PENSTOCK_PLACING_SHARD", 2)
PENSTOCK_PLACING_HEADROOM = env.float("PENSTOCK_PLACING_HEADROOM", 0.3)
PENSTOCK_PARTITIONS = env.int("PENSTOCK_PARTITIONS", 4)
PENSTOCK_TAPS_PARTITIONS = env.int("PENSTOCK_TAPS_PARTITIONS", 1)
PENSTOCK_REPLICATION = env.int("PENSTOCK_REPLICATION", 3 if PRODUCTION else 1)
PENSTOCK_MIN_ISR = env.int("PENSTOCK_MIN_ISR", 2 if PRODUCTION else 1)
PENSTOCK_QUOTAS = parse_quotas(env.str("PENSTOCK_QUOTAS", ""))
PENSTOCK_MAX_EVENT_BYTES = env.int("PENSTOCK_MAX_EVENT_BYTES", 256 * 1024)
PENSTOCK_ROLLOUT_UP_S = env.float("PENSTOCK_ROLLOUT_UP_S", 75)
PENSTOCK_ROLLOUT_WATCH_S = env.float("PENSTOCK_ROLLOUT_WATCH_S", 90)

# -- mail: alerts, invitations and accounts; in development it is printed
EMAIL_CONFIG = env.email_url("PENSTOCK_MAIL_URL", default="consolemail://")
if PRODUCTION and EMAIL_CONFIG["EMAIL_BACKEND"].endswith(".console.EmailBackend"):
    raise ImproperlyConfigured(
        "PENSTOCK_MAIL_URL: needs a mail server when PENSTOCK_ENV=production: printed invitations, password resets and "
        "alerts reach nobody"
    )
vars().update(EMAIL_CONFIG)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("PENSTOCK_MAIL_FROM", "penstock@localhost")
PENSTOCK_OPERATOR_MAIL = env.str("PENSTOCK_OPERATOR_MAIL", "")

# -- people
AUTH_USER_MODEL = "mgmt.User"
AUTHENTICATION_BACKENDS = ["mgmt.tenancy.authentication.LimitedBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/sign-in/"
LOGIN_REDIRECT_URL = "/"
SIGN_IN_LINK_MAX_AGE_S = 24 * 3600

# -- django-allauth (docs/decisions/0120): password reset, e-mail, second factors, passkeys and sessions
ACCOUNT_ADAPTER = "mgmt.sso.allauth_adapters.SsoAccountAdapter"
SOCIALACCOUNT_ADAPTER = "mgmt.sso.allauth_adapters.SsoAdapter"
ACCOUNT_FORMS = {"change_password": "mgmt.tenancy.allauth_forms.LimitedChangePasswordForm"}
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "mandatory"  # of a changed address; sign-in does not wait for it (the adapter)
ACCOUNT_EMAIL_VERIFICATION_BY_CODE_ENABLED = True
ACCOUNT_CHANGE_EMAIL = True
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[Penstock] "
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if PRODUCTION else "http"
# Mail to an address that need not be the sender's own is bounded per day, as for invitations.
ACCOUNT_RATE_LIMITS = {
    "reset_password": "20/h/ip,5/h/key,10/d/key",
    "change_password": "10/h/user",
    "manage_email": "10/m/user,20/d/user",
    "confirm_email": "1/10s/key,5/d/key",
}
# Members of staff need a second factor. Off in development, where the box prints a sign-in link for the staff account.
PENSTOCK_STAFF_MFA = env.bool("PENSTOCK_STAFF_MFA") if env.str("PENSTOCK_STAFF_MFA", "") else PRODUCTION
MFA_ADAPTER = "mgmt.tenancy.allauth_adapters.MfaAdapter"
MFA_FORMS = {"add_webauthn": "mgmt.tenancy.allauth_forms.PasskeyForm"}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = MFA_PASSKEY_SIGNUP_ENABLED = True
MFA_ALLOW_UNVERIFIED_EMAIL = True  # an account is never made for an address of another person: sign-up is by invitation
MFA_TOTP_ISSUER = "Penstock"
MFA_TOTP_TOLERANCE = 1

# -- browser
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PRODUCTION
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_NAME = "penstock_session"
CSRF_COOKIE_NAME = "penstock_csrf"
CSRF_COOKIE_HTTPONLY = False  # the console's htmx reads it to send the X-CSRFToken header
SECURE_SSL_REDIRECT = PRODUCTION
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if PRODUCTION else None
SECURE_HSTS_SECONDS = 31_536_000 if PRODUCTION else 0
# Not for subdomains, and no preload: other sites of the operator's domain are not ours to decide about.
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = False
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5_000  # the editor sends four fields for each of a spec's steps
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

_POLICY: dict[str, Any] = {
    "default-src": [SELF],
    "script-src": [SELF, NONCE],
    "style-src": [SELF, NONCE],
    "img-src": [SELF, "data:"],
    "font-src": [SELF],
    "connect-src": [SELF],
    "object-src": [NONE],
    "base-uri": [NONE],
    "form-action": [SELF],
    "frame-ancestors": [NONE],
}
CONTENT_SECURITY_POLICY = {"DIRECTIVES": _POLICY}
# Unfold ships Alpine, which evaluates expressions; staff pages alone get this policy (config.middleware).
ADMIN_CONTENT_SECURITY_POLICY = _POLICY | {
    "script-src": [SELF, "'unsafe-inline'", "'unsafe-eval'"],
    "style-src": [SELF, "'unsafe-inline'"],
    "img-src": [SELF, "data:", "blob:"],
}

# -- static files: hashed and compressed in production, served from their source directories in development
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = PENSTOCK_VAR / "static" if PRODUCTION else None
WHITENOISE_USE_FINDERS = not PRODUCTION
_STATIC_STORAGE = "whitenoise.storage.CompressedManifestStaticFilesStorage"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": _STATIC_STORAGE if PRODUCTION else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}

# -- language and time zone
LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

# -- the API
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "mgmt.web.authentication.TokenAuthentication",
        "mgmt.web.authentication.LimitedBasicAuthentication",
        "mgmt.web.authentication.CsrfSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PARSER_CLASSES": ["mgmt.web.parsers.BoundedJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_THROTTLE_CLASSES": ["mgmt.web.throttling.ApiThrottle"],
    "NUM_PROXIES": 0,  # config.middleware.ClientAddress has already resolved proxies
    "EXCEPTION_HANDLER": "drf_standardized_errors.handler.exception_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
DRF_STANDARDIZED_ERRORS = {
    "EXCEPTION_HANDLER_CLASS": "mgmt.web.handlers.ProblemHandler",
    "EXCEPTION_FORMATTER_CLASS": "mgmt.web.handlers.ProblemFormatter",
    "NESTED_FIELD_SEPARATOR": "\x1f",  # mgmt.web.handlers.FIELD_SEPARATOR
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Penstock",
    "DESCRIPTION": "Pipes, their revisions, keys and destinations. Every error is application/problem+json.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PUBLIC": True,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "mgmt.web.document.hook.complete"],
    "ENUM_NAME_OVERRIDES": {
        "CompatibilityLevel": "mgmt.registry.models.LEVELS",
        "Controller": "mgmt.cells.models.control.Controller",
        "ActionOutcome": "mgmt.cells.models.control.ControlAction.Outcome",
        "RefusalKind": "mgmt.cells.models.control.ControlAction.Refusal",
        "ProblemKind": "mgmt.cells.serializers.board_serializers.PROBLEM_KINDS",
        "RunOutcome": "mgmt.cells.models.control.TaskRun.Outcome",
        "KafkaState": "mgmt.cells.models.kafka.KafkaCheck.State",
        "WhoActs": "mgmt.cells.models.control.ControlAction.CONTROLLERS",
        "PipeState": "mgmt.pipes.models.Pipe.State",
        "RevisionState": "mgmt.pipes.models.PipeRevision.State",
        "DestinationTestState": "mgmt.delivery_tests.models.DestinationTest.State",
        "DestinationState": "mgmt.pipes.models.Destination.State",
        "AlertState": "mgmt.alerts.models.Alert.State",
        "ProbeState": "mgmt.alerts.models.Alert.Probe",
        "ChannelKind": "mgmt.alerts.models.AlertChannel.Kind",
        "MoveState": "mgmt.deliveries.models.Redrive.State",
        "ReplayState": "mgmt.replays.models.Replay.State",
        "ShadowState": "mgmt.shadows.models.Shadow.State",
        "MoveKind": "mgmt.deliveries.models.Redrive.What",
        "PlaceKind": "mgmt.deliveries.models.OffsetSet.Kind",
        "Role": "mgmt.tenancy.models.Membership.Role",
    },
}

UNFOLD = {
    "SITE_TITLE": "Penstock staff",
    "SITE_HEADER": "Penstock",
    "SITE_SYMBOL": "water",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda _request: static("penstock/mark.svg")}],
    "SHOW_HISTORY": True,
    "ENVIRONMENT": "mgmt.admin.environment_label",
}

LOGGING_CONFIG = None
logging_config(stream=sys.stderr)
