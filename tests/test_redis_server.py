from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from routemaster.redis_address import socket_path
from routemaster.redis_server import find_server, find_servers
from tests.servers import RedisServer

ROOT = Path(__file__).resolve().parents[1]
WITHIN_S = 20
NO_PATH = "/nonexistent"  # offers no redis-server, so that the bundled one is used


class Wrapper:
    """`python -m routemaster.redis_server`, as honcho starts it."""

    def __init__(self, cwd: Path, data_dir: Path, path: str | None = None, **env: str) -> None:
        self.socket = socket_path(data_dir)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("ROUTEMASTER_")}
        # The interpreter is named in full, so PATH only decides which redis-server is found.
        inherited |= {"PATH": path} if path is not None else {}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "routemaster.redis_server"],
            cwd=cwd,
            env=inherited
            | {"PYTHONPATH": str(ROOT), "ROUTEMASTER_ROOT_KEY": "k"}
            | {"ROUTEMASTER_DATA_DIR": str(data_dir)}
            | env,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def client(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self.socket), decode_responses=True)

    def until_ready(self) -> Wrapper:
        deadline_s = time.monotonic() + WITHIN_S
        with self.client() as client:
            while time.monotonic() < deadline_s and self.process.poll() is None:
                try:
                    client.ping()
                    return self
                except redis.RedisError:
                    time.sleep(0.01)
        self.process.kill()
        raise AssertionError(f"not ready: {self.process.communicate()[1]}")

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        return self.end()

    def end(self) -> tuple[int, str]:
        _, err = self.process.communicate(timeout=WITHIN_S)
        return self.process.returncode, err


@contextmanager
def wrapper(tmp_path, data_dir=None, **options):
    it = Wrapper(tmp_path, data_dir or tmp_path / "var", **options)
    try:
        yield it
    finally:
        it.process.kill()  # the server follows, see test_the_server_dies_with_us
        it.process.wait()
        if it.process.stderr:
            it.process.stderr.close()


def eventually(check) -> bool:
    deadline_s = time.monotonic() + WITHIN_S
    while not check() and time.monotonic() < deadline_s:
        time.sleep(0.01)
    return bool(check())


def test_there_is_a_server_with_script_flags():
    assert find_server() == find_servers()[0]
    assert all(int(s.version.split(".")[0]) >= 7 for s in find_servers())


def test_an_old_or_broken_server_on_the_path_is_passed_over(tmp_path, monkeypatch):
    fake = tmp_path / "redis-server"
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for script in ("echo 'Redis server v=6.2.14 sha=0'", "exit 1", "echo nonsense"):
        fake.write_text(f"#!/bin/sh\n{script}\n")
        fake.chmod(0o755)
        assert fake not in [s.path for s in find_servers()]


@pytest.mark.parametrize("path", [None, NO_PATH], ids=["preferred", "bundled"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_data_is_kept_over_a_restart(tmp_path, path, number):
    with wrapper(tmp_path, path=path) as first, first.until_ready().client() as client:
        client.set("k", "v")
        client.close()
        code, err = first.stop(number)
        assert (code, "data kept" in err) == (0, True), err
    with wrapper(tmp_path, path=path) as second, second.until_ready().client() as client:
        assert client.get("k") == "v"


@pytest.mark.parametrize("order", [(None, NO_PATH), (NO_PATH, None)])
def test_data_is_kept_when_the_server_changes(tmp_path, order):
    """Installing or removing a redis-server must not lose what is in var/."""
    with wrapper(tmp_path, path=order[0]) as first, first.until_ready().client() as client:
        client.rpush("list", *range(300))
        client.zadd("zset", {"a": 1.5, "b": 2})
        client.hset("hash", mapping={"f": "1"})
        client.xadd("stream", {"f": "1"}, id="5-1")
        client.set("expires", "1", px=3_600_000)
        client.bgrewriteaof()
        assert eventually(lambda: not client.info("persistence")["aof_rewrite_in_progress"])
        client.close()
        first.stop()
    with wrapper(tmp_path, path=order[1]) as second, second.until_ready().client() as client:
        assert client.lrange("list", 0, -1) == [str(n) for n in range(300)]
        assert dict(client.zrange("zset", 0, -1, withscores=True)) == {"a": 1.5, "b": 2.0}
        assert client.hgetall("hash") == {"f": "1"}
        assert client.xrange("stream") == [("5-1", {"f": "1"})]
        assert 0 < client.pttl("expires") <= 3_600_000


def test_it_is_configured_as_promised(tmp_path):
    with wrapper(tmp_path, ROUTEMASTER_REDIS_MAX_MEM="64m") as it:
        with it.until_ready().client() as client:
            config = client.config_get("*")
    assert config["maxmemory"] == str(64 * 1024**2)
    assert config["maxmemory-policy"] == "noeviction"
    assert (config["appendonly"], config["appendfsync"], config["save"]) == ("yes", "everysec", "")
    assert config["port"] == "0"


def test_only_we_may_connect(tmp_path):
    with wrapper(tmp_path) as it:
        it.until_ready()
        assert it.socket.stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "var").stat().st_mode & 0o777 == 0o700


def test_a_second_server_on_the_same_data_is_refused(tmp_path):
    with wrapper(tmp_path) as first, wrapper_after(first, tmp_path) as second:
        code, err = second.end()
        assert code == 1 and "already answers" in err
        with first.client() as client:
            assert client.ping()


def wrapper_after(first: Wrapper, tmp_path):
    first.until_ready()
    return wrapper(tmp_path)


def test_the_server_dies_with_us_and_its_socket_is_no_obstacle(tmp_path):
    if sys.platform != "linux":
        pytest.skip("only Linux can tie a process to its parent")
    with wrapper(tmp_path) as first, first.until_ready().client() as client:
        pid = client.info("server")["process_id"]
        client.set("k", "v")
        first.process.kill()
        assert eventually(lambda: not Path(f"/proc/{pid}").exists())
    with wrapper(tmp_path) as second, second.until_ready().client() as client:
        assert client.get("k") == "v"


def test_a_socket_left_behind_is_no_obstacle(tmp_path):
    with wrapper(tmp_path) as first, first.until_ready().client() as client:
        os.kill(client.info("server")["process_id"], signal.SIGKILL)
        code, err = first.end()
        assert code == 1 and "stopped by itself" in err
        assert first.socket.exists()
    with wrapper(tmp_path) as second:
        second.until_ready()


def test_it_waits_for_the_others_to_finish(tmp_path):
    with wrapper(tmp_path) as it, it.until_ready().client() as client:
        client.ping()  # holds its connection from here on
        os.killpg(it.process.pid, signal.SIGTERM)  # as honcho does
        with pytest.raises(subprocess.TimeoutExpired):
            it.process.wait(0.5)
        assert client.set("last", "words")
        client.close()
        assert it.end()[0] == 0
    with wrapper(tmp_path) as again, again.until_ready().client() as client:
        assert client.get("last") == "words"


def test_it_does_not_wait_for_ever(tmp_path):
    with wrapper(tmp_path) as it, it.until_ready().client() as client:
        client.ping()
        assert it.stop()[0] == 0


def test_a_server_that_cannot_start_says_why(tmp_path):
    broken = tmp_path / "var" / "appendonlydir"
    broken.mkdir(parents=True)
    (broken / "appendonly.aof.manifest").write_text("nonsense\n")
    with wrapper(tmp_path) as it:
        code, err = it.end()
    assert code == 1
    assert "stopped by itself" in err and "manifest" in err


def test_a_long_data_dir(tmp_path):
    data_dir = tmp_path / ("d" * 120)
    with wrapper(tmp_path, data_dir) as it:
        it.until_ready()
        assert it.socket.parent != data_dir
        assert it.socket.parent.stat().st_mode & 0o777 == 0o700
        assert it.stop()[0] == 0
    it.socket.parent.rmdir()


def test_a_shared_folder_for_the_socket_is_refused(tmp_path):
    data_dir = tmp_path / ("d" * 120)
    folder = socket_path(data_dir).parent
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    try:
        with wrapper(tmp_path, data_dir) as it:
            code, err = it.end()
        assert code == 1 and "0700" in err
    finally:
        folder.rmdir()


def test_with_an_external_redis_it_only_stays(tmp_path):
    url = "redis://me:hush@127.0.0.1:1/0"
    with wrapper(tmp_path, ROUTEMASTER_REDIS_URL=url) as it:
        assert it.process.stderr is not None
        line = it.process.stderr.readline()
        assert "using external Redis url=redis://me:***@127.0.0.1:1/0" in line
        assert it.process.poll() is None
        assert it.stop()[0] == 0
    assert not (tmp_path / "var").exists()


def test_bad_settings_end_it_with_78(tmp_path):
    with wrapper(tmp_path, ROUTEMASTER_REDIS_MAX_MEM="lots") as it:
        code, err = it.end()
    assert code == 78 and "ROUTEMASTER_REDIS_MAX_MEM" in err


def test_our_own_test_server_restarts_and_keeps_its_data(own_redis_server: RedisServer):
    with own_redis_server.client() as client:
        client.set("k", "v")
    own_redis_server.kill()
    own_redis_server.start()
    with redis.Redis.from_url(own_redis_server.url) as client:
        assert client.get("k") == b"v"


def test_each_test_finds_redis_empty(redis_server: RedisServer):
    with redis_server.client() as client:
        assert client.dbsize() == 0
        client.set("k", "v")


def test_each_test_finds_redis_empty_again(redis_server: RedisServer, settings):
    with redis.Redis.from_url(settings.redis_address) as client:
        assert client.dbsize() == 0
        client.set("k", "v")
