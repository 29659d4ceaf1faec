"""A proxy before Redis that knows the scripts: it can act when one of them is called, and be slow,
deaf or rude for a while."""

from __future__ import annotations

import random
import select
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from routemaster.store import scripts
from routemaster.store.scripts import Scripts
from tests.proxy import Proxy, read, shut

BEFORE, AFTER = "before", "after"
# What it swallows is asked for again long before this.
DEAF_TURN_S = 0.02


@dataclass
class Trap:
    """`act` is called once, when `script` is about to reach Redis, or its reply to be told. The
    connection is then closed: before, Redis never sees the call; after, nobody sees the reply."""

    script: str
    when: str
    act: Callable[[], None]
    has_sprung: threading.Event = field(default_factory=threading.Event)


class FaultyProxy(Proxy):
    def __init__(self, redis_port: int, dice: random.Random) -> None:
        super().__init__(redis_port)
        self._dice = dice
        self._names = {getattr(scripts.load(), n).sha.encode(): n for n in Scripts.__slots__}
        self._trap: Trap | None = None
        self._lock = threading.Lock()
        self.delay_ms: tuple[int, int] = (0, 0)
        self.reset_share = 0.0  # of all exchanges
        self.is_deaf = False

    def set(self, trap: Trap) -> Trap:
        self._trap = trap
        return trap

    def unset(self) -> None:
        self._trap = None

    def hang_up(self) -> None:
        for each in list(self._sockets):
            shut(each)

    def _pass_on(self, client: socket.socket, upstream: socket.socket) -> bool:
        commands, request = read(client, 1)
        if not commands:
            return False
        if commands[0][0].upper() == b"SUBSCRIBE":
            return self._listen(client, upstream, request)
        self._obstruct()
        if self._springs(commands, BEFORE):
            return False
        upstream.sendall(request)
        replies, answer = read(upstream, len(commands))
        if not replies or self._springs(commands, AFTER):
            return False
        if self.is_deaf or self._dice.random() < self.reset_share:
            return False
        client.sendall(answer)
        return True

    def _listen(self, client: socket.socket, upstream: socket.socket, request: bytes) -> bool:
        upstream.sendall(request)
        while upstream in (readable := select.select([client, upstream], [], [])[0]):
            data = upstream.recv(1 << 16)
            if not data or client in readable:
                break
            client.sendall(data)
        return False  # whoever listens says nothing more, but that it has gone

    def _obstruct(self) -> None:
        low, high = self.delay_ms
        if high:
            time.sleep(self._dice.randint(low, high) / 1000)
        while self.is_deaf:
            time.sleep(DEAF_TURN_S)

    def _springs(self, commands: list[list[bytes]], when: str) -> bool:
        called = {self._names.get(c[1]) for c in commands if c[0].upper() == b"EVALSHA"}
        with self._lock:
            trap = self._trap
            if trap is None or trap.when != when or trap.script not in called:
                return False
            self._trap = None
        trap.act()
        trap.has_sprung.set()
        return True
