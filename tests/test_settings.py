from __future__ import annotations

import fcntl
import ipaddress
import os
import subprocess
import sys
from pathlib import Path

import pytest

from routemaster import dotenv
from routemaster.bus import export_backlog
from routemaster.errors import SettingsError
from routemaster.redis_address import SOCKET_PATH_MAX_BYTES, mask_url, socket_path
from routemaster.settings import SETTINGS, STARTED_BY_US, Settings, unknown_names

ROOT = Path(__file__).resolve().parents[1]
DEV = {"ROUTEMASTER_ROOT_KEY": "k"}
PROD = {"ROUTEMASTER_ENV": "production", "ROUTEMASTER_ROOT_KEY": "kq7" * 12}


def problems(env: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        Settings.from_env(env)
    return caught.value.problems


def test_development_defaults_are_convenient():
    s = Settings.from_env(DEV)
    assert (s.port, s.bind, s.force_ssl, s.http_callbacks) == (17890, "127.0.0.1", False, True)
    assert s.callback_networks == (
        ipaddress.ip_network("127.0.0.0/8"),
        ipaddress.ip_network("::1/128"),
    )


def test_production_defaults_are_safe():
    s = Settings.from_env(PROD)
    assert (s.is_production, s.bind, s.force_ssl, s.http_callbacks) == (
        True,
        "0.0.0.0",
        True,
        False,
    )
    assert s.callback_networks == ()


def test_every_problem_is_named_at_once():
    found = problems({"PORT": "0", "ROUTEMASTER_TIMEOUT": "nan", "ROUTEMASTER_SSL_VERIFY": "maybe"})
    assert [p.split()[0] for p in found] == [
        "PORT",
        "ROUTEMASTER_TIMEOUT",
        "ROUTEMASTER_SSL_VERIFY",
        "ROUTEMASTER_ROOT_KEY",
    ]


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "1e3", "1_000", "+5", "٣", "x", "9" * 40])
@pytest.mark.parametrize("row", [r for r in SETTINGS if r.default.rstrip("mgk").isdigit()])
def test_numbers_are_bounded(row, text):
    assert problems(DEV | {row.env: text})[0].startswith(f"{row.env} must be")


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", True), ("YES", True), ("on", True), ("0", False), ("False", False), ("off", False)],
)
def test_booleans(text, value):
    assert Settings.from_env(DEV | {"ROUTEMASTER_DIGEST_AUTH": text}).digest_auth is value


def test_an_empty_variable_counts_as_unset():
    assert Settings.from_env(DEV | {"PORT": "", "ROUTEMASTER_REDIS_URL": " "}) == Settings.from_env(
        DEV
    )


@pytest.mark.parametrize(
    "key",
    [
        "",
        "CHANGE-ME",
        "changeme",
        "Secret",
        "short-but-random-7fQ2",
        "CHANGE_ME-CHANGE_ME-CHANGE_ME-CHANGE_ME",
        "secret-Secret-SECRET-secret-secret-secret",
        "super-secret-root-key-super-secret-root-key-1",
    ],
)
def test_production_refuses_a_bad_root_key(key):
    assert problems(PROD | {"ROUTEMASTER_ROOT_KEY": key})[0].startswith("ROUTEMASTER_ROOT_KEY")


@pytest.mark.parametrize("timeout_s", ["0.1", "1", "20", "600"])
def test_a_lease_outlasts_any_delivery(timeout_s):
    env = DEV | {"ROUTEMASTER_TIMEOUT": timeout_s}
    settings = Settings.from_env(env)
    assert settings.lease_s > settings.timeout_s * 1.5
    assert Settings.from_env(env | {"ROUTEMASTER_LEASE": "1000"}).lease_s == 1000
    too_short = str(settings.timeout_s + 0.9) if settings.timeout_s > 0.1 else "1"
    assert problems(env | {"ROUTEMASTER_LEASE": too_short}) == (
        "ROUTEMASTER_LEASE must be at least 1 second more than ROUTEMASTER_TIMEOUT",
    )


def test_a_missing_root_key_in_development_says_what_to_run():
    assert "make start" in problems({})[0]


def test_client_tokens():
    text = "a--12345678, my-app_1--xx--yy--zz,a--another-token"
    s = Settings.from_env(DEV | {"ROUTEMASTER_CLIENTS": text})
    assert s.clients == ("a--12345678", "my-app_1--xx--yy--zz", "a--another-token")


@pytest.mark.parametrize(
    "text",
    ["a", "a-12345678", "--12345678", "--x--12345678", "A--12345678", "a--1234567", "a--1234 5678"]
    + [f"{'n' * 65}--12345678", "a--12345678,a--12345678", "a--12345678,", "a--123456é78"]
    + ["a:b--12345678"],
)
def test_bad_client_tokens_are_refused_without_showing_them(text):
    (problem,) = problems(DEV | {"ROUTEMASTER_CLIENTS": text})
    assert problem.startswith("ROUTEMASTER_CLIENTS")
    assert "1234" not in problem


def test_production_wants_longer_client_secrets():
    assert problems(PROD | {"ROUTEMASTER_CLIENTS": "a--123456789012345"})
    assert Settings.from_env(PROD | {"ROUTEMASTER_CLIENTS": "a--1234567890123456"}).clients


@pytest.mark.parametrize("url", ["redis://h:6379/0", "rediss://:p@h", "unix:///tmp/a.sock?db=1"])
def test_redis_urls(url):
    assert Settings.from_env(DEV | {"ROUTEMASTER_REDIS_URL": url}).redis_address == url


@pytest.mark.parametrize("url", ["http://h", "redis://", "unix://", "redis://:hush@h:99999", "h:1"])
def test_bad_redis_urls_are_refused_without_showing_them(url):
    (problem,) = problems(DEV | {"ROUTEMASTER_REDIS_URL": url})
    assert problem.startswith("ROUTEMASTER_REDIS_URL") and "hush" not in problem


def test_sizes_take_suffixes():
    s = Settings.from_env(
        DEV | {"ROUTEMASTER_REDIS_MAX_MEM": "2G", "ROUTEMASTER_REDIS_MIN_FREE": "300mb"}
    )
    assert (s.redis_max_mem_bytes, s.redis_min_free_bytes) == (2 * 1024**3, 300 * 1024**2)


def test_the_default_of_free_memory_follows_a_small_maximum():
    s = Settings.from_env(DEV | {"ROUTEMASTER_REDIS_MAX_MEM": "50m"})
    assert s.redis_min_free_bytes == 5 * 1024**2


def test_free_memory_must_be_less_than_the_maximum():
    env = {"ROUTEMASTER_REDIS_MAX_MEM": "50m", "ROUTEMASTER_REDIS_MIN_FREE": "50m"}
    assert "ROUTEMASTER_REDIS_MIN_FREE" in problems(DEV | env)[0]


@pytest.mark.parametrize("text", ["10.0.0.1/8", "10.0.0.0/33", "host", "10.0.0.0/8,,"])
def test_bad_networks(text):
    assert problems(DEV | {"ROUTEMASTER_TRUSTED_PROXIES": text})


def test_no_network_at_all_can_be_said():
    env = DEV | {"ROUTEMASTER_CALLBACK_NETWORKS": "none"}
    assert Settings.from_env(env).callback_networks == ()


def test_repr_hides_secrets():
    shown = repr(
        Settings.from_env(
            {
                "ROUTEMASTER_ROOT_KEY": "hush-root",
                "ROUTEMASTER_CLIENTS": "app--hush-client",
                "ROUTEMASTER_REDIS_URL": "redis://me:hush-redis@h?password=hush-query",
            }
        )
    )
    assert "hush" not in shown
    assert "app--***" in shown and "redis://me:***@h?password=***" in shown


def test_mask_url_leaves_the_rest():
    assert mask_url("redis://h:6379/1?db=2") == "redis://h:6379/1?db=2"
    assert mask_url("unix:///tmp/a%20b.sock") == "unix:///tmp/a%20b.sock"


@pytest.mark.parametrize(
    ("env", "port"),
    [
        ({"PORT": "5000"}, 5000),
        ({"PORT": "5000", "HONCHO_PROCESS_NAME": "web.1"}, 17890),
        ({"PORT": "5000", "HONCHO_PROCESS_NAME": "web.1", STARTED_BY_US: "1"}, 5000),
        ({"PORT": "8000", "HONCHO_PROCESS_NAME": "web.1"}, 8000),
        ({"PORT": "65600", "HONCHO_PROCESS_NAME": "worker.1"}, 17890),
    ],
)
def test_a_port_that_honcho_invented_is_not_believed(env, port):
    assert Settings.from_env(DEV | env).port == port


def test_unknown_names_suggest_the_right_one():
    found = unknown_names({"ROUTEMASTER_TIMOUT": "1", "ROUTEMASTER_TIMEOUT": "1", "OTHER": "1"})
    assert found == ["ROUTEMASTER_TIMOUT is not a setting; did you mean ROUTEMASTER_TIMEOUT?"]


def test_a_long_data_dir_has_its_socket_elsewhere(tmp_path):
    long = tmp_path / ("d" * 120)
    assert len(os.fsencode(socket_path(long))) <= SOCKET_PATH_MAX_BYTES
    assert socket_path(long) == socket_path(long / ".." / long.name)
    assert socket_path(long) != socket_path(tmp_path / ("e" * 120))


def test_the_address_of_our_own_redis_survives_odd_characters():
    from redis.connection import parse_url

    s = Settings.from_env(DEV | {"ROUTEMASTER_DATA_DIR": "/tmp/a b%20?c#d"})
    assert parse_url(s.redis_address)["path"] == "/tmp/a b%20?c#d/redis.sock"


@pytest.mark.parametrize("document", ["README.md", ".env.example"])
def test_every_setting_is_documented(document):
    text = (ROOT / document).read_text()
    assert [row.env for row in SETTINGS if row.env not in text] == []


def test_env_example_shows_the_defaults():
    commented = (ROOT / ".env.example").read_text().splitlines()
    shown = dotenv.parse("\n".join(line[1:] for line in commented if line.startswith("#export")))
    assert shown == {row.env: row.default for row in SETTINGS}


def test_dotenv_reads_what_a_shell_reads(tmp_path):
    path = tmp_path / ".env"
    path.write_text(
        "# don't mind\n\nA=1\nexport B='x y' # c\nC=\"q\\\"z\\$\"\nD=a#b # c\nE=\n  F=f\nA=2\n"
    )
    shell = subprocess.run(
        ["sh", "-c", '. "$0"; printf "%s|" "$A" "$B" "$C" "$D" "$E" "$F"', str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "|".join(dotenv.load(path, {}).values()) + "|" == shell.stdout


@pytest.mark.parametrize("line", ["A=hush b", "A='hush", 'A="hush', "hush", "1A=hush", "A = hush"])
def test_dotenv_refuses_what_it_does_not_understand(line):
    with pytest.raises(SettingsError, match="line 2") as caught:
        dotenv.parse(f"OK=1\n{line}\n")
    assert "hush" not in str(caught.value)


def test_the_environment_wins_over_dotenv(tmp_path):
    path = tmp_path / ".env"
    path.write_text("export A=file\nexport B=file\nexport C=file\nexport PORT=8000\n")
    environ = {"A": "env", "B": "", "PORT": "5000", "HONCHO_PROCESS_NAME": "web.1"}
    merged = dotenv.load(path, environ)
    assert merged == {"A": "env", "B": "file", "C": "file", "PORT": "8000"} | {
        "HONCHO_PROCESS_NAME": "web.1"
    }


def test_create_makes_one_key_for_good(tmp_path):
    path = tmp_path / ".env"
    key = dotenv.create(path)
    assert dotenv.create(path) == key == dotenv.load(path, {})["ROUTEMASTER_ROOT_KEY"]
    assert len(key) >= 32
    assert path.stat().st_mode & 0o777 == 0o600


def test_create_keeps_what_is_there(tmp_path):
    path = tmp_path / ".env"
    path.write_text("export A=1\nexport ROUTEMASTER_ROOT_KEY=")
    key = dotenv.create(path)
    assert path.read_text().startswith("export A=1\nexport ROUTEMASTER_ROOT_KEY=\n")
    assert dotenv.load(path, {}) == {"A": "1", "ROUTEMASTER_ROOT_KEY": key}
    assert path.stat().st_mode & 0o777 == 0o600


def test_honcho_does_not_see_our_lines(tmp_path):
    from honcho import environ

    path = tmp_path / ".env"
    dotenv.create(path)
    assert environ.parse(path.read_text()) == {}


def test_of_two_first_starts_the_second_finds_the_first_ones_key(tmp_path):
    code = "from pathlib import Path; from routemaster import dotenv;"
    code += "print('ready', flush=True); print(dotenv.create(Path('.env')))"
    path = tmp_path / ".env"
    with path.open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)  # the first start, in the middle of create()
        second = subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert second.stdout is not None and second.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(0.5)
        first.write("export ROUTEMASTER_ROOT_KEY=of-the-first\n")
    assert second.communicate(timeout=30)[0] == "of-the-first\n"


def test_the_export_is_beside_the_data_and_off_in_production():
    assert Settings.from_env(DEV).export_url == str(Path.cwd() / "var" / "export")
    assert Settings.from_env(DEV | {"ROUTEMASTER_DATA_DIR": "/d"}).export_url == "/d/export"
    assert Settings.from_env(DEV | {"ROUTEMASTER_EXPORT_URL": "none"}).export_url is None
    assert Settings.from_env(PROD).export_url is None
    assert Settings.from_env(PROD | {"ROUTEMASTER_EXPORT_URL": "x/y"}).export_url == str(
        Path.cwd() / "x" / "y"
    )


@pytest.mark.parametrize(
    "url", ["s3://b/p", "gs://b", "hdfs://h:8020/p", "file:///x", "abfs://c/p"]
)
def test_urls_of_the_export(url):
    assert Settings.from_env(DEV | {"ROUTEMASTER_EXPORT_URL": url}).export_url == url


@pytest.mark.parametrize(
    "url", ["ftp://KEY:s3cret@h/", "s3://", "file://", "http://[s3cret/", "s3:///"]
)
def test_other_urls_of_the_export_are_refused_without_showing_them(url):
    (problem,) = problems(DEV | {"ROUTEMASTER_EXPORT_URL": url})
    assert problem.startswith("ROUTEMASTER_EXPORT_URL must be")
    assert "s3cret" not in problem


@pytest.mark.parametrize(
    "url",
    ["s3://KEY:s3cret@b/p", "abfs://c/p?account_key=s3cret", "s3://b/p?a=1&session_token=s3cret"],
)
def test_secrets_in_the_url_of_the_export_are_masked(url):
    settings = Settings.from_env(DEV | {"ROUTEMASTER_EXPORT_URL": url})
    assert "s3cret" not in repr(settings) and "***" in repr(settings)


def test_a_small_redis_keeps_fewer_rows_for_the_export():
    small = DEV | {"ROUTEMASTER_REDIS_MAX_MEM": "40m"}
    assert export_backlog(Settings.from_env(DEV)) == 200_000
    assert export_backlog(Settings.from_env(small)) == 40 * 1024**2 // 20 // 200
    assert export_backlog(Settings.from_env(DEV | {"ROUTEMASTER_EXPORT_URL": "none"})) == 0
