"""Everything that can be set, in one table: `SETTINGS`, which the documents are tested against.

Only the roots (start, web, worker, redis_server) pass the environment in; nobody else reads it.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from routemaster import setting_types as types
from routemaster.errors import SettingsError
from routemaster.redis_address import mask_url, socket_path

MIB = 1024**2
GIB = 1024**3
# What a lease has left when a delivery has had all its time: enough to say so to Redis.
LEASE_MARGIN_S = 1

# Set by `routemaster.start` for its children, see without_invented_port.
STARTED_BY_US = "_ROUTEMASTER_STARTED"

# What people leave in place of a key. A key that holds one of the first, or consists of nothing
# but the second, is public knowledge however long it is.
_PLACEHOLDERS = ("changeme", "replaceme", "insertkey", "yourkey", "yoursecret")
_DEFAULT_WORDS = re.compile(
    "(?:secret|password|default|example|admin|root|key|token|routemaster|super|my|the)*"
)


@dataclass(frozen=True)
class Setting:
    """One row: defaults are texts, given to the same parser as the environment's."""

    env: str
    parse: Callable[[str], Any]
    default: str
    doc: str
    production: str
    field: str = ""


def _setting(
    env: str,
    parse: Callable[[str], Any],
    default: str,
    doc: str,
    *,
    production: str | None = None,
) -> Any:
    """`production` is the default there, when it differs."""
    row = Setting(env, parse, default, doc, default if production is None else production)
    return dataclasses.field(metadata={"setting": row})


@dataclass(frozen=True, repr=False)
class Settings:
    env: str = _setting(
        "ROUTEMASTER_ENV",
        types.choice("development", "production"),
        "development",
        "`development` or `production`, which chooses the safe defaults",
    )
    port: int = _setting(
        "PORT", types.integer(1, 65535), "17890", "TCP port the web process listens on"
    )
    bind: str = _setting(
        "ROUTEMASTER_BIND",
        types.host,
        "127.0.0.1",
        "address the web process listens on",
        production="0.0.0.0",
    )
    root_key: str = _setting(
        "ROUTEMASTER_ROOT_KEY",
        types.secret,
        "",
        "credential of the operator; at least 32 characters in production",
    )
    clients: tuple[str, ...] = _setting(
        "ROUTEMASTER_CLIENTS",
        types.tokens,
        "",
        "tokens that exist from the start, `name--secret`, comma separated",
    )
    redis_url: str | None = _setting(
        "ROUTEMASTER_REDIS_URL",
        types.redis_url,
        "",
        "Redis 7 or later to use; without it the bus runs its own",
    )
    namespace: str = _setting(
        "ROUTEMASTER_REDIS_NAMESPACE",
        types.matching(r"[a-z0-9_-]{1,32}"),
        "rm",
        "prefix of every key in Redis",
    )
    redis_timeout_s: float = _setting(
        "ROUTEMASTER_REDIS_TIMEOUT",
        types.seconds(0.05, 60),
        "0.8",
        "seconds to wait for Redis before answering 503",
    )
    redis_max_mem_bytes: int = _setting(
        "ROUTEMASTER_REDIS_MAX_MEM",
        types.size(MIB, 1024 * GIB),
        "1g",
        "memory the bus may fill",
    )
    redis_min_free_bytes: int = _setting(
        "ROUTEMASTER_REDIS_MIN_FREE",
        types.size(0, 1024 * GIB),
        "100m",
        "free memory below which old batches are dropped (a tenth of a maximum below 1g)",
    )
    data_dir: Path = _setting(
        "ROUTEMASTER_DATA_DIR",
        types.directory,
        "./var",
        "where the bus's own Redis keeps its data",
    )
    web_processes: int = _setting(
        "ROUTEMASTER_WEB_PROCESSES", types.integer(1, 64), "2", "processes that answer requests"
    )
    web_threads: int = _setting(
        "ROUTEMASTER_WEB_THREADS", types.integer(1, 256), "8", "threads in each of them"
    )
    worker_threads: int = _setting(
        "ROUTEMASTER_WORKER_THREADS",
        types.integer(1, 1000),
        "5",
        "deliveries in flight in one worker process",
    )
    timeout_s: float = _setting(
        "ROUTEMASTER_TIMEOUT",
        types.seconds(0.1, 600),
        "20",
        "seconds a delivery may take in all",
    )
    connect_timeout_s: float = _setting(
        "ROUTEMASTER_CONNECT_TIMEOUT",
        types.seconds(0.05, 60),
        "2",
        "seconds of it that connecting may take",
    )
    lease_s: float = _setting(
        "ROUTEMASTER_LEASE",
        types.seconds(1, 3600),
        "35",
        "seconds until another worker takes over what a silent one held "
        "(unset: half as long again as `ROUTEMASTER_TIMEOUT`, and 5)",
    )
    max_reclaims: int = _setting(
        "ROUTEMASTER_MAX_RECLAIMS",
        types.integer(1, 1000),
        "5",
        "workers that may die of one job before it is quarantined",
    )
    ssl_verify: bool = _setting(
        "ROUTEMASTER_SSL_VERIFY", types.boolean, "true", "check the certificates of callbacks"
    )
    force_ssl: bool = _setting(
        "ROUTEMASTER_FORCE_SSL",
        types.boolean,
        "false",
        "send plain http requests to https",
        production="true",
    )
    trusted_proxies: tuple[types.Network, ...] = _setting(
        "ROUTEMASTER_TRUSTED_PROXIES",
        types.networks,
        "none",
        "networks whose `X-Forwarded-*` headers are believed, comma separated",
    )
    http_callbacks: bool = _setting(
        "ROUTEMASTER_HTTP_CALLBACKS",
        types.boolean,
        "true",
        "allow callbacks over plain http",
        production="false",
    )
    callback_networks: tuple[types.Network, ...] = _setting(
        "ROUTEMASTER_CALLBACK_NETWORKS",
        types.networks,
        "127.0.0.0/8,::1/128",
        "private networks that callbacks may live in, comma separated, or `none`",
        production="none",
    )
    digest_auth: bool = _setting(
        "ROUTEMASTER_DIGEST_AUTH", types.boolean, "false", "accept HTTP Digest authentication"
    )
    dashboard: bool = _setting(
        "ROUTEMASTER_DASHBOARD", types.boolean, "true", "serve the dashboard at `/dashboard`"
    )
    operations_max: int = _setting(
        "ROUTEMASTER_OPERATIONS_MAX",
        types.integer(1, 100_000),
        "1000",
        "attempts in a subscriber's history; older ones, and those of yesterday, are forgotten",
    )
    monitor_interval_s: float = _setting(
        "ROUTEMASTER_MONITOR_INTERVAL",
        types.seconds(0.1, 3600),
        "10",
        "seconds between two looks at queues and memory",
    )
    metric_adapters: tuple[str, ...] = _setting(
        "ROUTEMASTER_METRIC_ADAPTERS",
        types.choices("print", "statsd"),
        "none",
        "where gauges and counters are sent: `print`, `statsd`, comma separated, or `none`",
    )
    statsd_address: tuple[str, int] = _setting(
        "ROUTEMASTER_STATSD_ADDRESS",
        types.host_and_port,
        "127.0.0.1:8125",
        "host and port of the StatsD server (UDP, with Datadog's tags)",
    )
    export_url: str | None = _setting(
        "ROUTEMASTER_EXPORT_URL",
        types.export_url,
        "./var/export",
        "where the export's files go: a directory, or an `s3://`, `gs://`, `hdfs://` or `abfs://` "
        "URL; `none` for no export",
        production="none",
    )
    export_interval_s: float = _setting(
        "ROUTEMASTER_EXPORT_INTERVAL",
        types.seconds(1, 86_400),
        "60",
        "seconds between two turns of the export, each of which makes some small files",
    )
    export_format: str = _setting(
        "ROUTEMASTER_EXPORT_FORMAT",
        types.choice("parquet", "jsonl"),
        "parquet",
        "`parquet`, or `jsonl` for JSON Lines",
    )
    export_retention_days: int = _setting(
        "ROUTEMASTER_EXPORT_RETENTION",
        types.integer(0, 36_500),
        "90",
        "days that exported files are kept, or 0 for ever",
    )
    export_backlog: int = _setting(
        "ROUTEMASTER_EXPORT_BACKLOG",
        types.integer(1000, 100_000_000),
        "200000",
        "rows of each kind that wait in Redis for the export; what overflows is counted",
    )
    max_event_data_bytes: int = _setting(
        "ROUTEMASTER_MAX_EVENT_DATA",
        types.size(0, MIB),
        "64",
        "bytes of `data` in one event, as MessagePack",
    )
    max_body_bytes: int = _setting(
        "ROUTEMASTER_MAX_BODY", types.size(1024, 256 * MIB), "4m", "bytes of one request's body"
    )
    max_bulk_events: int = _setting(
        "ROUTEMASTER_MAX_BULK", types.integer(1, 100_000), "10000", "events in one publish"
    )
    max_fanout: int = _setting(
        "ROUTEMASTER_MAX_FANOUT",
        types.integer(1, 10_000_000),
        "25000",
        "events times subscribers in one publish: about 5 ms of Redis' time",
    )
    max_lanes: int = _setting(
        "ROUTEMASTER_MAX_LANES", types.integer(1, 1_000_000), "10000", "lanes of one subscriber"
    )
    max_waiting: int = _setting(
        "ROUTEMASTER_MAX_WAITING",
        types.integer(0, 800),
        "400",
        "requests that one web process lets wait for something to pull",
    )
    max_streams: int = _setting(
        "ROUTEMASTER_MAX_STREAMS",
        types.integer(0, 150),
        "100",
        "live streams that one web process serves",
    )
    max_backoff_ms: int = _setting(
        "MAX_BACKOFF_MS",
        types.integer(1, 86_400_000),
        "60000",
        "longest pause after a failed delivery, in milliseconds",
    )
    reporter: str = _setting(
        "ROUTEMASTER_REPORTER",
        types.choice("print", "sentry"),
        "print",
        "where exceptions are told: `print` (only in the log) or `sentry` (there too)",
    )
    sentry_dsn: str = _setting(
        "ROUTEMASTER_SENTRY_DSN", types.dsn, "", "address of the Sentry project, with its key"
    )
    log_level: str = _setting(
        "ROUTEMASTER_LOG_LEVEL",
        types.choice("debug", "info", "warning", "error"),
        "info",
        "`debug`, `info`, `warning` or `error`",
    )

    @property
    def is_production(self) -> bool:
        return self.env == "production"

    @property
    def redis_address(self) -> str:
        # Quoted, because redis-py unquotes the path of a unix:// URL.
        return self.redis_url or f"unix://{quote(str(socket_path(self.data_dir)))}"

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{k}={v!r}' for k, v in self.masked().items())})"

    def masked(self) -> dict[str, object]:
        shown: dict[str, object] = {s.field: getattr(self, s.field) for s in SETTINGS}
        shown["root_key"] = "***" if self.root_key else ""
        shown["clients"] = tuple(f"{token.partition('--')[0]}--***" for token in self.clients)
        shown["sentry_dsn"] = "***" if self.sentry_dsn else ""
        shown["export_url"] = mask_url(self.export_url) if self.export_url else None
        shown["redis_url"] = mask_url(self.redis_url) if self.redis_url else None
        return shown

    def secrets(self) -> list[str]:
        """Texts that nobody may be told."""
        password = urlsplit(self.redis_url or "").password
        tokens = [part for token in self.clients for part in (token, token.partition("--")[2])]
        return [text for text in (self.root_key, *tokens, password, self.sentry_dsn) if text]

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Settings:
        env = without_invented_port(env)
        problems: list[str] = []
        values = _parse_all(env, problems)
        if not problems:
            _settle_min_free(values, env)
            _settle_lease(values, env)
            _settle_export(values, env)
            problems = _rules_between(values)
        if problems:
            raise SettingsError(problems)
        return cls(**values)


SETTINGS: tuple[Setting, ...] = tuple(
    dataclasses.replace(f.metadata["setting"], field=f.name) for f in dataclasses.fields(Settings)
)

# What a field holds when neither the environment nor the table has a text for it.
_ABSENT: dict[str, object] = {"root_key": "", "clients": (), "redis_url": None, "sentry_dsn": ""}


def _parse_all(env: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
    is_production = env.get("ROUTEMASTER_ENV", "").strip().lower() == "production"
    values: dict[str, Any] = {}
    for row in SETTINGS:
        default = row.production if is_production else row.default
        text = env.get(row.env, "").strip() or default
        try:
            values[row.field] = row.parse(text) if text else _ABSENT[row.field]
        except ValueError as error:
            problems.append(f"{row.env} {error}")
    problems.extend(_root_key_problems(env.get("ROUTEMASTER_ROOT_KEY", "").strip(), is_production))
    problems.extend(_client_problems(values.get("clients", ()), is_production))
    return values


def _root_key_problems(key: str, is_production: bool) -> list[str]:
    if not key and is_production:
        return ["ROUTEMASTER_ROOT_KEY must be set in production, to at least 32 random characters"]
    if not key:
        return [
            "ROUTEMASTER_ROOT_KEY must be set: `make start` (or `python -m routemaster.start`) "
            "makes one and keeps it in .env"
        ]
    if is_production and _looks_default(key):
        return ["ROUTEMASTER_ROOT_KEY must not be a default or an example in production"]
    if is_production and len(key) < 32:
        return ["ROUTEMASTER_ROOT_KEY must have at least 32 characters in production"]
    return []


def _looks_default(key: str) -> bool:
    letters = re.sub(r"[^a-z]", "", key.lower())
    if any(word in letters for word in _PLACEHOLDERS):
        return True
    return bool(letters and _DEFAULT_WORDS.fullmatch(letters))


def _client_problems(clients: tuple[str, ...], is_production: bool) -> list[str]:
    least = 16 if is_production else 8
    return [
        f"ROUTEMASTER_CLIENTS: the secret of {name} must have at least {least} characters"
        for name, _, secret in (token.partition("--") for token in clients)
        if len(secret) < least
    ]


def _settle_min_free(values: dict[str, Any], env: Mapping[str, str]) -> None:
    # The fixed default would contradict a small maximum that somebody set alone.
    if not env.get("ROUTEMASTER_REDIS_MIN_FREE", "").strip():
        tenth = values["redis_max_mem_bytes"] // 10
        values["redis_min_free_bytes"] = min(values["redis_min_free_bytes"], tenth)


def _settle_lease(values: dict[str, Any], env: Mapping[str, str]) -> None:
    if not env.get("ROUTEMASTER_LEASE", "").strip():
        values["lease_s"] = values["timeout_s"] * 1.5 + 5


def _settle_export(values: dict[str, Any], env: Mapping[str, str]) -> None:
    # Beside the rest of the data, also when that is elsewhere.
    if values["export_url"] and not env.get("ROUTEMASTER_EXPORT_URL", "").strip():
        values["export_url"] = str(values["data_dir"] / "export")


def _rules_between(values: dict[str, Any]) -> list[str]:
    problems = []
    if values["redis_min_free_bytes"] >= values["redis_max_mem_bytes"]:
        problems.append("ROUTEMASTER_REDIS_MIN_FREE must be less than ROUTEMASTER_REDIS_MAX_MEM")
    # Else a batch could go out a second time while the first is on its way.
    if values["lease_s"] < values["timeout_s"] + LEASE_MARGIN_S:
        problems.append(
            f"ROUTEMASTER_LEASE must be at least {LEASE_MARGIN_S} second more "
            "than ROUTEMASTER_TIMEOUT"
        )
    if values["reporter"] == "sentry" and not values["sentry_dsn"]:
        problems.append("ROUTEMASTER_SENTRY_DSN must be set for ROUTEMASTER_REPORTER=sentry")
    return problems


def unknown_names(env: Mapping[str, str]) -> list[str]:
    """A warning for each ROUTEMASTER_* variable that no setting reads, most likely a typo."""
    known = [row.env for row in SETTINGS]
    strangers = sorted(n for n in env if n.startswith("ROUTEMASTER_") and n not in known)
    return [f"{name} is not a setting{_did_you_mean(name, known)}" for name in strangers]


def _did_you_mean(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    return f"; did you mean {close[0]}?" if close else ""


def without_invented_port(env: Mapping[str, str]) -> dict[str, str]:
    """honcho hands every process a PORT: 5000 to the first when nobody set one, and 100 more to
    each further process. Only the web process' PORT means anything, and its 5000 only when
    `routemaster.start` chose it."""
    process = env.get("HONCHO_PROCESS_NAME", "")
    is_invented = process and env.get("PORT") == "5000" and STARTED_BY_US not in env
    if is_invented or (process and not process.startswith("web")):
        return {name: value for name, value in env.items() if name != "PORT"}
    return dict(env)
