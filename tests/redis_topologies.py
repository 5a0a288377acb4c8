"""Several Redis servers that belong together: a cluster, and a primary with a replica and a sentinel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.redis_server import RedisServer

_READY_S = 30.0
_SLOTS = 16384


def wait_until(ready: Callable[[], bool]) -> None:
    """Wait for servers to agree; there is no event to wait for."""
    end = time.monotonic() + _READY_S
    while not ready():
        assert time.monotonic() < end, "the servers did not come together"
        time.sleep(0.02)


@contextmanager
def cluster_of_two() -> Iterator[list[RedisServer]]:
    """Two primaries, each with half of the slots."""
    settings = ("--cluster-enabled", "yes", "--cluster-node-timeout", "500", "--cluster-require-full-coverage", "no")
    nodes: list[RedisServer] = []
    try:
        for number in range(2):
            nodes.append(RedisServer(tcp=True, settings=settings))
            half = range(number * _SLOTS // 2, (number + 1) * _SLOTS // 2)
            nodes[-1].do("CLUSTER", "ADDSLOTS", *half)
        nodes[0].do("CLUSTER", "MEET", "127.0.0.1", nodes[1].port)
        wait_until(lambda: all(_is_whole(node) for node in nodes))
        yield nodes
    finally:
        for node in nodes:
            node.close()


def _is_whole(node: RedisServer) -> bool:
    says = node.do("CLUSTER", "INFO").split()
    return b"cluster_state:ok" in says and b"cluster_slots_assigned:16384" in says


class Sentinel(RedisServer):
    """A sentinel that watches a primary as the service ``main``, and alone decides that it is gone."""

    def __init__(self, primary: RedisServer) -> None:
        self._primary = primary
        super().__init__(tcp=True)

    def _command(self) -> list[str]:
        settings = self.folder / "sentinel.conf"
        settings.write_text(
            f"sentinel monitor main 127.0.0.1 {self._primary.port} 1\n"
            "sentinel down-after-milliseconds main 300\n"
            "sentinel failover-timeout main 2000\n"
        )
        where = ["--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket", str(self.socket)]
        return [self.binary, str(settings), "--sentinel", *where, "--dir", str(self.folder)]


@contextmanager
def watched_pair() -> Iterator[tuple[RedisServer, Sentinel]]:
    """A primary with a replica, and the sentinel that watches them."""
    servers: list[RedisServer] = []
    try:
        primary = RedisServer(tcp=True)
        servers.append(primary)
        servers.append(RedisServer(tcp=True, replicaof=("127.0.0.1", primary.port)))
        wait_until(lambda: "online" in str(primary.do("INFO", "replication").get("slave0")))  # a sentinel looks rarely
        sentinel = Sentinel(primary)
        servers.append(sentinel)
        wait_until(lambda: _follows(sentinel))
        yield primary, sentinel
    finally:
        for server in servers:
            server.close()


def _follows(sentinel: Sentinel) -> bool:
    replicas = sentinel.do("SENTINEL", "REPLICAS", "main")
    if not replicas:
        return False
    fields = dict(zip(replicas[0][::2], replicas[0][1::2], strict=True))
    return fields[b"flags"] == b"slave" and fields.get(b"master-link-status") == b"ok"
