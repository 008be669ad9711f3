"""Compiled code in storage that machines share: any URL that fsspec knows (`pip install jitdialects[shared]`).

`<config.shared_cache>/<compiler>/<fingerprint>/<class>-<signature>-<level>.jdk`, files as on disk, each signed with
`config.shared_cache_secret`. Whoever can write there can put anything there, and it would be executed, so an entry
without a valid signature, or one that is not the entry that was asked for, is never loaded: it is counted, and
what is compiled instead takes its place. The signature is over key and content, so that entries cannot be swapped.

Only the thread that compiles asks here. What takes longer than `SECONDS`, or fails, is given up and the storage
left alone for a while, each time twice as long.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, TypeVar

from jitdialects.config import config
from jitdialects.runtime.cache.entry_file import LARGEST, BadEntry, StoredEntry, decode, encode
from jitdialects.runtime.cache.events import Events
from jitdialects.runtime.cache.key import CacheKey, candidates

SECONDS = 5.0
"""What one look into the storage, or one write, may take."""
FIRST_PAUSE, LONGEST_PAUSE = 30.0, 600.0
SHORTEST_SECRET = 16
"""Bytes."""
T = TypeVar("T")


class SharedLevel:
    """The entries at `config.shared_cache`."""

    def __init__(self) -> None:
        self.events = Events()
        self._storage: tuple[str, Any, str] | None = None
        """URL, file system, path in it."""
        self._paused_until = 0.0
        self._pause = FIRST_PAUSE

    @property
    def is_on(self) -> bool:
        """Whether there is such storage, and it is worth asking now."""
        return config.shared_cache is not None and time.monotonic() >= self._paused_until

    def find(self, wanted: CacheKey, *, general: bool) -> list[StoredEntry]:
        """As `DiskLevel.find`."""
        secret = self._secret()
        if secret is None:
            return []
        found = self._within(lambda: list(self._find(wanted, general, secret)))
        if found is not None:
            self.events.count("hits" if found else "misses", max(1, len(found)))
        return found or []

    def _find(self, wanted: CacheKey, general: bool, secret: bytes) -> Iterator[StoredEntry]:
        system, root = self._open()
        place = f"{root}/{wanted.folder}"
        try:
            listed: list[dict[str, Any]] = system.ls(place, detail=True, refresh=True)
        except (FileNotFoundError, NotADirectoryError):
            return
        sizes = {str(each["name"]).rsplit("/", 1)[-1]: each.get("size") for each in listed}
        exact, groups = candidates(sizes, wanted)
        for names in (exact, *groups):
            if names is not exact and not general:
                return
            for name in names:
                entry = self._read(system, f"{place}/{name}", sizes[name], wanted, secret)
                if entry is not None:
                    yield entry
                    if names is exact:
                        return
                    break

    def _read(
        self, system: Any, path: str, size: object, wanted: CacheKey, secret: bytes
    ) -> StoredEntry | None:
        try:
            if isinstance(size, int) and size > LARGEST:
                raise BadEntry("unreadable", f"it has {size} bytes")
            stored = decode(system.cat_file(path), secret)
            own_place = f"{stored.key.folder}/{stored.key.file_name}"
            if not path.endswith(f"/{own_place}") or not stored.key.is_akin(wanted):
                raise BadEntry("misplaced", "it is another entry than its name says")
        except FileNotFoundError:
            return None
        except BadEntry as error:
            name = path.rsplit("/", 1)[-1]
            self.events.problem(error.reason, f"the shared cache entry {name} is not used: {error}")
            return None
        if stored.level > wanted.features:
            self.events.count("other CPU")
            return None
        return stored

    def put(self, key: CacheKey, level: str, frame: bytes, library: bytes) -> None:
        """Sign and write an entry."""
        secret = self._secret()
        if secret is None:
            return
        data = encode(key, level, frame, library, secret)
        if self._within(lambda: self._write(key, data)):
            self.events.count("stores")
        else:
            self.events.count("write failures")

    def _write(self, key: CacheKey, data: bytes) -> bool:
        system, root = self._open()
        path = f"{root}/{key.folder}/{key.file_name}"
        system.makedirs(path.rpartition("/")[0], exist_ok=True)
        protocols = (system.protocol,) if isinstance(system.protocol, str) else system.protocol
        if "file" in protocols:  # stores of objects show whole ones only, folders do not
            temporary = f"{path}.new-{os.getpid()}-{time.monotonic_ns()}"
            system.pipe_file(temporary, data)
            os.replace(temporary, path)
        else:
            system.pipe_file(path, data)
        return True

    # ---- getting there

    def _secret(self) -> bytes | None:
        """The secret, where the storage can be used."""
        if not self.is_on:
            return None
        try:
            secret = (
                b"" if config.shared_cache_secret is None else config.shared_cache_secret.bytes()
            )
        except OSError as error:
            self._give_up("no secret", f"its secret cannot be read ({error.strerror})")
            return None
        if len(secret) >= SHORTEST_SECRET:
            return secret
        self._give_up(
            "no secret",
            f"JITDIALECTS_SHARED_CACHE_SECRET needs at least {SHORTEST_SECRET} bytes, the same on every "
            "machine: without it anyone who can write there could have code executed here",
        )
        return None

    def _open(self) -> tuple[Any, str]:
        url = config.shared_cache or ""
        if self._storage is None or self._storage[0] != url:
            system, path = import_module("fsspec").core.url_to_fs(url)
            self._storage = url, system, str(path).rstrip("/")
        return self._storage[1:]

    def _within(self, job: Callable[[], T]) -> T | None:
        """What `job` gives within `SECONDS`; else None, and the storage is left alone for a while."""
        done: list[T] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                done.append(job())
            except BaseException as error:  # noqa: BLE001 (whatever a file system raises)
                errors.append(error)

        # A thread for each: one that hangs in a network is left behind.
        worker = threading.Thread(target=work, name="jitdialects-shared", daemon=True)
        worker.start()
        worker.join(SECONDS)
        if done:
            self._pause = FIRST_PAUSE
            return done[0]
        if not errors:
            self._give_up("unreachable", f"it did not answer within {SECONDS:g} s")
        elif isinstance(errors[0], ModuleNotFoundError):
            self._give_up(
                "no fsspec", f"{errors[0]}; pip install 'jitdialects[shared]' and what fsspec needs"
            )
        else:
            self._give_up("unreachable", f"{type(errors[0]).__name__}: {errors[0]}")
        return None

    def _give_up(self, what: str, why: str) -> None:
        self._paused_until = time.monotonic() + self._pause
        scheme, _, rest = (config.shared_cache or "").partition("://")
        user, at, _ = rest.partition("@")
        for hidden in (user, *user.split(":")) if at else ():
            why = why.replace(hidden, "...") if hidden else why
        self.events.problem(
            what, f"the shared cache ({scheme}://...) is not used for {self._pause:g} s: {why}"
        )
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def after_fork(self) -> None:
        """In a child: connections are the parent's."""
        self._storage = None
