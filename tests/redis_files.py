"""Files of a Redis server for fsspec: `redis-files://host:port/path`; what the shared cache needs, no more."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import fsspec
from fsspec.spec import AbstractFileSystem


class RedisFileSystem(AbstractFileSystem):
    """A key per file. Speaks the protocol (RESP 2) itself, one connection for each command."""

    protocol = "redis-files"

    def __init__(self, host: str = "127.0.0.1", port: int = 6379, **options: Any) -> None:
        super().__init__(**options)
        self.where = host, int(port)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.split("://", 1)[-1].partition("/")[2] if "://" in path else path

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        host, _, port = path.split("://", 1)[-1].partition("/")[0].partition(":")
        return {"host": host, "port": int(port)}

    def command(self, *parts: str | bytes) -> Any:
        """The server's answer."""
        raw = [p.encode() if isinstance(p, str) else p for p in parts]
        message = b"*%d\r\n" % len(raw) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in raw)
        with socket.create_connection(self.where, 2) as connection:
            connection.sendall(message)
            with connection.makefile("rb") as answer:
                return _read(answer)

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        names = [name.decode() for name in self.command("KEYS", f"{path}/*")]
        if not names:
            raise FileNotFoundError(path)
        sizes = [{"name": n, "size": self.command("STRLEN", n), "type": "file"} for n in names]
        return sizes if detail else names

    def cat_file(self, path: str, start: Any = None, end: Any = None, **options: Any) -> bytes:
        found = self.command("GET", path)
        if found is None:
            raise FileNotFoundError(path)
        return found

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        self.command("SET", path, value)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """There are no folders."""


def _read(answer: Any) -> Any:
    line = answer.readline()[:-2]
    kind, rest = line[:1], line[1:]
    if kind == b"*":
        return [_read(answer) for _ in range(int(rest))]
    if kind == b"$":
        return None if rest == b"-1" else answer.read(int(rest) + 2)[:-2]
    if kind == b"-":
        raise OSError(rest.decode())
    return int(rest) if kind == b":" else rest


@contextlib.contextmanager
def redis_server() -> Iterator[str]:
    """The URL of a server of its own, on loopback."""
    fsspec.register_implementation("redis-files", RedisFileSystem, clobber=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = shutil.which("redis-server")
    assert program is not None
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder],
            stdout=subprocess.DEVNULL,
        )
        try:
            system = RedisFileSystem("127.0.0.1", port)
            for _ in range(200):
                with contextlib.suppress(OSError):
                    system.command("PING")
                    break
                time.sleep(0.02)
            yield f"redis-files://127.0.0.1:{port}/kernels"
        finally:
            server.kill()
            server.wait()
