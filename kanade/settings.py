"""Settings, read from the environment once; docs/reference/settings.md lists every variable."""

from pathlib import Path

import django_stubs_ext

from kanade import environment, logs
from scheduler.rules import zones

# Before any application lists the system's time zones: everything computes with the pinned data.
TZDATA_VERSION = zones.TZDATA_VERSION

# `ModelAdmin[Model]` is written at run time too.
django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent
env = environment.read_environment(BASE_DIR)

DEBUG = env.bool("DEBUG", default=False)
# This machine alone, over plain http: what `make run` uses.
KANADE_LOCAL = env.bool("KANADE_LOCAL", default=False)
SECRET_KEY = environment.secret(env, "SECRET_KEY", debug=DEBUG)
KANADE_TOKEN_PEPPER = environment.secret(env, "KANADE_TOKEN_PEPPER", debug=DEBUG)
KANADE_ENGINE = environment.engine(env)
vars().update(environment.celery(env))
KANADE_BASE_URL = env.str(
    "KANADE_BASE_URL", default="http://127.0.0.1:8000" if KANADE_LOCAL else ""
)
# Django's views run in so many threads of the ASGI server; agents that wait use none.
KANADE_WEB_THREADS = env.int("KANADE_WEB_THREADS", default=16)
# How many waiting agents are called back in a second: as many exchanges follow.
KANADE_CALLS_PER_SECOND = env.float("KANADE_CALLS_PER_SECOND", default=150.0)
KANADE_METRICS_TOKEN = env.str("KANADE_METRICS_TOKEN", default="")
ALLOWED_HOSTS: list[str] = env.list(
    "ALLOWED_HOSTS",
    default=["localhost", "127.0.0.1", "[::1]"] if KANADE_LOCAL or DEBUG else [],
)
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", default=[])
environment.require_loopback({"KANADE_LOCAL": KANADE_LOCAL, "DEBUG": DEBUG}, ALLOWED_HOSTS)

INSTALLED_APPS = [
    "kanade.apps.KanadeAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
    "axes",
    # Always installed: migrations must not depend on settings.
    "django_celery_beat",
    "django_tasks",
    "scheduler",
    "fleet",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "kanade.middleware.SafeHeaders",
    "kanade.middleware.PlainBodies",
    "kanade.middleware.AgentsPath",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "kanade.middleware.ViewerZone",
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "kanade.urls"
WSGI_APPLICATION = "kanade.wsgi.application"
ASGI_APPLICATION = "kanade.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {"default": environment.database(env)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Never a cache that unpickles what another program could write.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

LANGUAGE_CODE = "en"
USE_I18N = True
USE_TZ = True
TIME_ZONE = env.str("TIME_ZONE", default="UTC")
FORMAT_MODULE_PATH = ["kanade.formats"]

# Functions of `django.tasks` run as tasks of the scheduler.
TASKS = {"default": {"BACKEND": "scheduler.backend.SchedulerBackend", "QUEUES": []}}

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# --- who may come in -------------------------------------------------------------------------
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
PASSWORD_HASHERS = [
    "kanade.hashers.Argon2",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
_VALIDATION = "django.contrib.auth.password_validation"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"{_VALIDATION}.UserAttributeSimilarityValidator"},
    {"NAME": f"{_VALIDATION}.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": f"{_VALIDATION}.CommonPasswordValidator"},
]
LOGIN_URL = "admin:login"
# Ten wrong passwords for one account from one address: that pair waits a quarter of an hour.
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_HTTP_RESPONSE_CODE = 429
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

# --- transport and headers -------------------------------------------------------------------
SECURE_SSL_REDIRECT = not (KANADE_LOCAL or DEBUG)
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = (
    0 if KANADE_LOCAL or DEBUG else env.int("SECURE_HSTS_SECONDS", default=31_536_000)
)
SECURE_HSTS_INCLUDE_SUBDOMAINS = env.bool("SECURE_HSTS_INCLUDE_SUBDOMAINS", default=False)
SECURE_HSTS_PRELOAD = env.bool("SECURE_HSTS_PRELOAD", default=False)
# Both are the operator's own decision about names beside this one.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
USE_X_FORWARDED_HOST = False
if env.bool("KANADE_BEHIND_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not (KANADE_LOCAL or DEBUG)
SESSION_COOKIE_NAME = "__Host-kanade" if SESSION_COOKIE_SECURE else "kanade"
SESSION_COOKIE_AGE = 8 * 3600
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_USE_SESSIONS = True
_SELF = "'self'"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": [_SELF],
        "style-src": [_SELF],
        "img-src": [_SELF, "data:"],
        "font-src": [_SELF],
        "connect-src": [_SELF],
        "form-action": [_SELF],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
        "object-src": ["'none'"],
    }
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_621_440
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1000
# No page of Kanade takes a file.
FILE_UPLOAD_HANDLERS: list[str] = []

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "fleet.operator_api.authentication.BearerToken",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["scheduler.api.permissions.DenyAll"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["scheduler.api.strict.StrictJSONParser"],
    "DEFAULT_PAGINATION_CLASS": "scheduler.api.paging.Pages",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "scheduler.api.problems.problem_response",
    # OPTIONS tells nothing that the OpenAPI document does not tell to staff.
    "DEFAULT_METADATA_CLASS": None,
    "UNAUTHENTICATED_USER": None,
    "NUM_PROXIES": env.int("KANADE_PROXIES", default=0),
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Kanade",
    "DESCRIPTION": "Run scripts on a fleet of PCs and know what happened.",
    "VERSION": "1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "kanade.documentation.add_problems",
    ],
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["scheduler.api.permissions.SignedInStaff"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

vars().update(environment.retention(env))
EMAIL_CONFIG = env.email("EMAIL_URL", default="consolemail://")
vars().update(EMAIL_CONFIG)
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default="kanade@localhost")
LOGGING = logs.configuration(
    level=env.str("LOG_LEVEL", default="INFO"),
    form=env.str("LOG_FORMAT", default="text" if KANADE_LOCAL or DEBUG else "json"),
)
