"""Exceptions are told to who looks after the bus: in the log always, to Sentry when it is set.

Whoever catches a bug logs it with its traceback; what is logged so is what is reported. Nothing of
a request, no values of variables and no secrets go along.
"""

from __future__ import annotations

import logging
import re
from importlib.util import find_spec
from typing import Any

from routemaster import __version__
from routemaster.settings import Settings

# A process that ends waits so long for what was not sent yet.
FLUSH_S = 1
HIDDEN = "***"
# What may stand in the text of an exception that others raise.
CREDENTIALS = re.compile(r"whsec_[A-Za-z0-9+/=_-]+|(?<=Basic )[A-Za-z0-9+/=]+|(?<=Bearer )\S+")


def problem(settings: Settings) -> str | None:
    if settings.reporter == "sentry" and find_spec("sentry_sdk") is None:
        return (
            "ROUTEMASTER_REPORTER=sentry needs sentry-sdk, which is not installed: "
            "pip install 'routemaster[sentry]'"
        )
    return None


def install(settings: Settings, process: str) -> None:
    """After the log was configured."""
    if settings.reporter != "sentry":
        return
    import sentry_sdk
    from sentry_sdk.integrations.atexit import AtexitIntegration
    from sentry_sdk.integrations.excepthook import ExcepthookIntegration
    from sentry_sdk.integrations.threading import ThreadingIntegration

    secrets = settings.secrets()
    sentry_sdk.init(
        dsn=settings.sentry_dsn,
        release=f"routemaster@{__version__}",
        environment=settings.env,
        # The others look into requests, arguments and installed packages.
        default_integrations=False,
        auto_enabling_integrations=False,
        integrations=[
            AtexitIntegration(callback=lambda pending, timeout: None),
            ExcepthookIntegration(),
            ThreadingIntegration(propagate_scope=False),
        ],
        include_local_variables=False,
        max_breadcrumbs=0,
        shutdown_timeout=FLUSH_S,
        before_send=lambda event, hint: without(event, secrets),
    )
    sentry_sdk.get_global_scope().set_tag("process", process)
    logging.getLogger().addHandler(ToSentry(level=logging.ERROR))


class ToSentry(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if not record.exc_info or record.name.startswith(("sentry_sdk", "urllib3")):
            return
        import sentry_sdk

        with sentry_sdk.new_scope() as scope:
            scope.set_tag("logger", record.name)
            scope.set_extra("log", record.getMessage())
            scope.capture_exception(record.exc_info)


def without(value: Any, secrets: list[str]) -> Any:
    """The same, with every secret blanked in every text."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, HIDDEN)
        return CREDENTIALS.sub(HIDDEN, value)
    if isinstance(value, dict):
        return {without(key, secrets): without(item, secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without(item, secrets) for item in value]
    return value
