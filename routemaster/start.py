"""`make start`: checks everything that can be wrong, says what to try next, becomes honcho."""

from __future__ import annotations

import errno
import os
import shlex
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from routemaster import dotenv, reporter
from routemaster.errors import SettingsError
from routemaster.settings import STARTED_BY_US, Settings

PACKAGE = Path(__file__).resolve().parent


def prepare(env_file: Path, environ: Mapping[str, str]) -> tuple[Settings, dict[str, str]]:
    """The settings, and the environment that the processes get."""
    env = dotenv.load(env_file, environ)
    mode = env.get("ROUTEMASTER_ENV", "").strip().lower() or "development"
    # Never in production: a key that nobody chose would be one that nobody keeps.
    if mode == "development" and not env.get(dotenv.ROOT_KEY, "").strip():
        env[dotenv.ROOT_KEY] = dotenv.create(env_file)
    settings = Settings.from_env(env)
    if problem := reporter.problem(settings):
        raise SettingsError([problem])
    env["PORT"] = str(settings.port)
    env["PYTHONUNBUFFERED"] = "1"
    env[STARTED_BY_US] = "1"
    # So that `python` in the Procfile is the one that runs this.
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env.get("PATH", os.defpath)])
    return settings, env


def port_problem(settings: Settings) -> str | None:
    """gunicorn would find out too, but only after a minute of retries between other messages."""
    where = f"{settings.bind} port {settings.port}"
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            settings.bind, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind) as probe:
            # As gunicorn does; else a bus stopped a moment ago would still count as running.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return f"{where} is in use: is the bus running already? Stop it, or set PORT"
        return f"cannot listen on {where}: {error.strerror}"
    return None


def procfile() -> Path:
    """Inside the package when installed from a wheel, at the top of a checkout otherwise."""
    packaged = PACKAGE / "Procfile"
    return packaged if packaged.exists() else PACKAGE.parent / "Procfile"


def greeting(settings: Settings, bold: str = "", plain: str = "") -> str:
    host = "127.0.0.1" if settings.bind == "0.0.0.0" else settings.bind
    url = f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"
    lines = [f"Routemaster listens on {bold}{url}{plain} ({settings.env})"]
    if not settings.is_production:  # production's output ends up in logs
        lines += [f"Root key ({dotenv.ROOT_KEY}, in .env): {bold}{settings.root_key}{plain}"]
        if settings.dashboard:
            lines.append(f"Dashboard: {url}/dashboard (sign in with the root key)")
        lines.append(f"API: {url}/docs")
        lines += ["", "Three commands to try, in another terminal:", *_commands(settings, url), ""]
    return "\n".join(lines)


def _commands(settings: Settings, url: str) -> list[str]:
    post = "curl -sS -H 'Content-Type: application/json'"
    root = shlex.quote(f"{settings.root_key}:")
    token = """sed -nE 's/.*"token": ?"([^"]+)".*/\\1/p'"""
    callback = '{"topics": ["widgets"], "callback": "http://127.0.0.1:8080/events", "uuid": "demo"}'
    event = '{"type": "create", "url": "https://example.com/widgets/1"}'
    return [
        f"""  TOKEN=$({post} -u {root} {url}/api_tokens -d '{{"name": "demo"}}' | {token})""",
        f"""  {post} -u "$TOKEN:" {url}/subscription -d '{callback}'""",
        f"""  {post} -u "$TOKEN:" {url}/topics/widgets -d '{event}'""",
    ]


def main() -> None:
    try:
        settings, env = prepare(Path(".env"), os.environ)
    except SettingsError as error:
        dotenv.exit_with(error)
    dotenv.warn_of_unknown(env)
    if problem := port_problem(settings):
        print(f"routemaster: {problem}", file=sys.stderr)
        sys.exit(1)
    colours = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    print(greeting(settings, *colours), flush=True)
    # Without an env file: honcho would let .env win over the environment.
    honcho = [sys.executable, "-m", "honcho", "-e", os.devnull, "-f", str(procfile()), "start"]
    os.execve(sys.executable, honcho, env)


if __name__ == "__main__":
    main()
