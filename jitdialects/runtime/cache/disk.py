"""Compiled code on disk, shared by the processes of one user on one machine.

`<config.cache_dir>/kernels/<compiler>/<fingerprint>/<class>-<signature>-<level>.jdk`, see `key` for the names
and `entry_file` for what is in a file. So what there is for a function is one look into one folder, which
costs microseconds: a process looks at the first call of a function with a shape.

Files are written under another name and renamed, never changed, and verified before they are loaded. The
folder must be the user's own and writable by nobody else, and so must a file. Whatever is wrong with it is a
miss that is counted and said once; a bad file is removed, so that the next process finds a good one. The
folder holds at most `config.disk_cap` bytes; what was used least recently goes first.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

from jitdialects.config import config
from jitdialects.errors import Error
from jitdialects.runtime.cache.entry_file import LARGEST, BadEntry, StoredEntry, decode, encode
from jitdialects.runtime.cache.events import Events
from jitdialects.runtime.cache.key import SUFFIX, CacheKey, candidates
from jitdialects.runtime.engines import LibraryFile
from jitdialects.runtime.engines.dlopen import private_folder
from jitdialects.runtime.messages import with_measures

FOLDER = "kernels"
_TEMPORARY = ".new-"
_LOCK = ".lock"
_ATTEMPTS = 3
_STALE_SECONDS = 3600
"""Age at which a temporary file belongs to nobody any more."""
_TOUCH_SECONDS = 600
"""A file is marked as used at most so often."""
_POLL_SECONDS = 0.005


@dataclass(frozen=True)
class Found:
    """An entry, and the file, if any, that begins with its library."""

    stored: StoredEntry
    file: LibraryFile | None


class DiskLevel:
    """The entries in `config.cache_dir`."""

    def __init__(self) -> None:
        self.events = Events()
        self._checked: dict[str, bool] = {}
        self._unswept = -1
        """Bytes written since the folder was last measured; -1: it never was."""
        self._lock_file: int | None = None

    @property
    def folder(self) -> Path | None:
        """Where entries are, or None where none are kept."""
        if config.cache_dir is None or not config.disk_cap:
            return None
        return config.cache_dir / FOLDER

    # ---- reading

    def find(self, wanted: CacheKey, *, general: bool) -> list[Found]:
        """The code for exactly `wanted`; without it and if `general`, what is there for all sizes of such
        calls. Code for another level counts where this one has all instructions that it uses."""
        folder = self.folder
        if folder is None:
            return []
        if not self._is_trusted(folder):
            self.events.count("misses")
            return []
        place = f"{folder}/{wanted.folder}"
        exact, groups = candidates(self._names(place), wanted)
        found = self._best(place, wanted, exact)
        if not found and general:
            for group in groups:
                found += self._best(place, wanted, group)
        self.events.count("hits" if found else "misses", max(1, len(found)))
        return found

    def _names(self, place: str) -> list[str]:
        try:
            return os.listdir(place)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self.events.problem("unreadable", f"the cache folder {place} is not used: {error}")
            return []

    def _best(self, place: str, wanted: CacheKey, names: list[str]) -> list[Found]:
        """The first usable one of these files."""
        for name in names:
            found = self.read(f"{place}/{name}", wanted)
            if found is not None:
                return [found]
        return []

    def read(self, path: str, wanted: CacheKey) -> Found | None:
        """The entry at `path`, if it is whole, its name is right, and it may serve a call of `wanted`."""
        try:
            stored, inode = verified(path)
        except FileNotFoundError:
            return None
        except BadEntry as error:
            self.events.problem(
                error.reason, f"the cache entry {path} is not used and made again: {error}"
            )
            remove_entry(path)
            return None
        except OSError as error:
            self.events.problem("unreadable", f"a cache entry is not used: {error}")
            return None
        if stored.level > wanted.features or not stored.key.is_akin(wanted):
            self.events.count("other CPU")
            return None
        return Found(stored, LibraryFile(path, inode))

    def _is_trusted(self, folder: Path) -> bool:
        """Whether nobody else can put code there; a folder that is not there yet is none's."""
        known = self._checked.get(str(folder))
        if known is not None:
            return known
        try:
            os.stat(folder)
            private_folder(folder)
            trusted = True
        except OSError:
            return False  # not there: asked again
        except Error as error:
            self.events.problem("foreign owner", f"no compiled code is kept on disk: {error}")
            trusted = False
        self._checked[str(folder)] = trusted
        return trusted

    # ---- writing

    def put(self, key: CacheKey, level: str, frame: bytes, library: bytes) -> LibraryFile | None:
        """Write an entry in place of what is there; the file, or None where that was not possible."""
        folder = self.folder
        if folder is None or self._checked.get(str(folder)) is False:
            return None
        path = f"{folder}/{key.folder}/{key.file_name}"
        data = encode(key, level, frame, library)
        try:
            for _ in range(_ATTEMPTS):
                with contextlib.suppress(FileNotFoundError):  # someone removes the folder meanwhile
                    private_folder(folder)
                    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
                    inode = _replace(path, data)
                    break
            else:
                raise FileNotFoundError(f"{folder} cannot be made, or is removed again and again")
        except (OSError, Error) as error:
            self.events.problem(
                "write failures",
                f"compiled code is not kept on disk: {error}; set JITDIALECTS_CACHE_DIR to a folder of "
                "your own with room, or to nothing",
            )
            return None
        self.events.count("stores")
        if self._unswept < 0 or self._unswept > config.disk_cap // 16:
            self.sweep()
        self._unswept += len(data)
        return LibraryFile(path, inode)

    def settle(self, kept: CacheKey, left: CacheKey, measured: str) -> None:
        """Of two entries for the same calls leave one, with what was `measured`, so that nobody compares them again. As
        long as that one cannot be written, both stay."""
        if self.folder is None:
            return
        kept_file, left_file = (f"{self.folder}/{k.folder}/{k.file_name}" for k in (kept, left))
        try:
            stored, _ = verified(kept_file)
        except (BadEntry, OSError):
            return
        frame = with_measures(stored.frame, measured)
        if self.put(kept, stored.level, frame, stored.reply.library) is not None:
            remove_entry(left_file)

    def sweep(self, cap: int | None = None) -> None:
        """Remove what was used least recently until less than `cap` bytes are left, and forgotten
        temporary files. Other processes may write, read and sweep at the same time."""
        folder = self.folder
        self._unswept = 0
        if folder is None:
            return
        cap = config.disk_cap if cap is None else cap
        files = list(entries_in(folder))
        total = sum(size for _, size, _ in files)
        if total <= cap:
            return
        for _, size, path in sorted(files):
            if total <= cap - cap // 8:
                break
            if remove_entry(path):
                self.events.count("evictions")
            total -= size
        remove_empty_folders(folder)

    # ---- one compile per machine

    @contextlib.contextmanager
    def compiling(self, key: CacheKey) -> Generator[None]:
        """No other process compiles the function of `key` meanwhile, if that can be arranged. Waits at most
        as long as a compile may take."""
        folder = self.folder
        if folder is None:
            yield
            return
        descriptor = None
        try:
            with contextlib.suppress(OSError, Error):
                private_folder(folder)
                place = folder / key.folder
                place.mkdir(mode=0o700, parents=True, exist_ok=True)
                descriptor = os.open(place / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                self._lock_file = descriptor
                _lock(descriptor, config.compile_seconds)
            yield
        finally:
            if descriptor is not None and self._lock_file is not None:
                self._lock_file = None
                with contextlib.suppress(OSError):
                    fcntl.flock(descriptor, fcntl.LOCK_UN)  # also where a forked child has it open
                os.close(descriptor)

    def after_fork(self) -> None:
        """In a child: the lock is the parent's."""
        if self._lock_file is not None:
            with contextlib.suppress(OSError):
                os.close(self._lock_file)
            self._lock_file = None


def _lock(descriptor: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                return
            time.sleep(_POLL_SECONDS)


def verified(path: str, touch: bool = True) -> tuple[StoredEntry, int]:
    """The entry at `path` and its inode; `BadEntry` where it is not what was written there. `touch`: mark it
    as used."""
    data, inode = _read_private(path, touch)
    stored = decode(data)
    if f"{stored.key.folder}/{stored.key.file_name}" != "/".join(path.rsplit("/", 3)[1:]):
        raise BadEntry("misplaced", "its name is that of another entry")
    return stored, inode


def _read_private(path: str, touch: bool) -> tuple[bytes, int]:
    """The bytes of a file that only this user can have written, and its inode."""
    try:
        # without O_NONBLOCK a pipe of that name would be waited for
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        raise BadEntry("unreadable", f"it cannot be opened ({error.strerror})") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise BadEntry("unreadable", "it is no file")
        if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise BadEntry("foreign owner", "others may write to it")
        if status.st_size > LARGEST:
            raise BadEntry("unreadable", f"it has {status.st_size} bytes")
        data = bytearray()
        while part := os.read(descriptor, LARGEST):
            data += part
        if touch and status.st_mtime + _TOUCH_SECONDS < time.time():
            with contextlib.suppress(OSError):
                os.utime(descriptor)
        return bytes(data), status.st_ino
    finally:
        os.close(descriptor)


def _replace(path: str, data: bytes) -> int:
    """Put a whole file there at once, in place of whatever is there; its inode."""
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=_TEMPORARY)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            inode = os.fstat(descriptor).st_ino
        try:
            os.replace(temporary, path)
        except IsADirectoryError:
            shutil.rmtree(path, ignore_errors=True)
            os.replace(temporary, path)
        return inode
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def remove_entry(path: str) -> bool:
    """Remove an entry; whether it was there to be removed."""
    try:
        os.unlink(path)
        return True
    except IsADirectoryError:
        shutil.rmtree(path, ignore_errors=True)
        return True
    except OSError:
        return False


def entries_in(folder: Path) -> Iterator[tuple[float, int, str]]:
    """(time of last use, bytes, path) of the files below `folder`; removes temporary ones that are
    forgotten. Files may come and go meanwhile."""
    pending = [str(folder)]
    while pending:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as found:
            for each in found:
                with contextlib.suppress(OSError):
                    if each.name.endswith(SUFFIX):
                        status = each.stat(follow_symlinks=False)
                        yield status.st_mtime, status.st_size, each.path
                    elif each.is_dir(follow_symlinks=False):
                        pending.append(each.path)
                    elif each.name.startswith(_TEMPORARY):
                        age = time.time() - each.stat(follow_symlinks=False).st_mtime
                        if age > _STALE_SECONDS:
                            os.unlink(each.path)


def remove_empty_folders(folder: Path) -> None:
    """Remove folders below without entries."""
    for compiler in list(_folders(str(folder))):
        for function in list(_folders(compiler)):
            with contextlib.suppress(OSError):
                if os.listdir(function) == [_LOCK]:
                    os.unlink(f"{function}/{_LOCK}")
                os.rmdir(function)
        with contextlib.suppress(OSError):
            os.rmdir(compiler)


def _folders(path: str) -> Iterator[str]:
    with contextlib.suppress(OSError), os.scandir(path) as found:
        yield from (each.path for each in found if each.is_dir(follow_symlinks=False))
