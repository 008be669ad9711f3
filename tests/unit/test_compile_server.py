"""The compile server: what goes wrong over there costs a compile, never a call and never a process."""

import contextlib
import gc
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from quiet import quiet

from jitdialects.bytecode.builder import ProgramBuilder
from jitdialects.config import config
from jitdialects.errors import CompileError
from jitdialects.runtime import compile_server, compiler
from jitdialects.runtime.cache import KernelCache
from jitdialects.runtime.compile_server import MAIN, CompileServer, compile_in_process
from jitdialects.runtime.messages import CompileReply, CompileRequest
from jitdialects.runtime.policy import Policy
from jitdialects.runtime.service import CompileService
from jitdialects.runtime.stats import stats
from jitdialects.runtime.vm import VM


def request(operator: str = "negative", signature: str = "main(f32[4])") -> bytes:
    builder = ProgramBuilder()
    main = builder.function("main", 1)
    main.returns(main.apply(operator, *main.parameters))
    program = builder.finish().to_bytes()
    return CompileRequest(program, "main", signature, "x86-64-v1").encode()


@pytest.fixture
def server() -> Iterator[CompileServer]:
    made = CompileServer()
    yield made
    made.close()


Play = Callable[[str], None]
"""Has a script stand in for the server."""

ECHO = """
import socket, struct, sys, time

connection = socket.socket(fileno=int(sys.argv[1]))


def receive():
    head = connection.recv(8, socket.MSG_WAITALL)
    return connection.recv(struct.unpack("<Q", head)[0], socket.MSG_WAITALL) if head else sys.exit()


receive()
while True:
    data = receive()
    pass
    connection.sendall(struct.pack("<Q", len(data)) + data)
"""
"""A server that answers each request with itself."""


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Play:
    def write(script: str) -> None:
        (tmp_path / "main.py").write_text(script)
        monkeypatch.setattr(compile_server, "MAIN", tmp_path / "main.py")

    return write


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pid: int, within: float = 20.0) -> bool:
    """Whether the process ends within so many seconds."""
    end = time.monotonic() + within
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.01)
    return not alive(pid)


def test_one_process_serves_request_after_request(server: CompileServer) -> None:
    assert server.pid is None
    replies = [CompileReply.decode(server(request())) for _ in range(2)]
    assert server.starts == 1
    assert server.pid is not None
    assert os.getpgid(server.pid) == server.pid, "^C in a terminal would end it"
    assert all(reply.library[:4] == b"\x7fELF" for reply in replies)
    # the first reply accounts for the imports, the second for its own compile
    assert replies[0].cpu_seconds > replies[1].cpu_seconds > 0


def test_a_server_gets_ready_before_it_is_asked(server: CompileServer) -> None:
    server.prepare()
    server.prepare()
    pid = server.pid
    assert pid is not None and server.starts == 1
    assert CompileReply.decode(server(request())).error is None
    assert server.pid == pid and server.starts == 1


def test_a_start_is_dear_where_there_is_one_cpu_and_no_server_yet(
    server: CompileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert server.start_seconds == 0
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1})
    assert server.start_seconds > 0
    assert CompileService(KernelCache(), server).start_seconds == server.start_seconds
    server.prepare()
    assert server.start_seconds == 0
    assert CompileService(KernelCache(), compile_in_process).start_seconds == 0


def test_who_is_closed_or_has_no_server_gets_nothing_ready(
    server: CompileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "compiler", "in-process")
    server.prepare()
    monkeypatch.setattr(config, "compiler", "server")
    server.close()
    server.prepare()
    assert server.pid is None and server.starts == 0


def test_a_server_that_cannot_be_started_is_no_error_before_it_is_asked(
    server: CompileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(compile_server, "_start", refuse)
    with quiet():
        server.prepare()
    assert server.is_apart


def test_packages_that_only_hooks_of_site_find_are_found(
    server: CompileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an editable install: their folder is in no path, and `site` installs a finder."""
    path = [p for p in sys.path if not (Path(p) / "xdsl").exists()]
    monkeypatch.setattr(sys, "path", path)
    assert CompileReply.decode(server(request())).error is None


def test_a_package_that_was_found_in_the_current_folder_is_the_servers_too(tmp_path: Path) -> None:
    """Another one may be installed, and would be another version."""
    package = MAIN.parents[1]
    shutil.copytree(package, tmp_path / package.name)
    with (tmp_path / package.name / "runtime" / "compiler.py").open("a") as file:
        file.write("\ndef compile_request(*_: object) -> bytes:\n    return __file__.encode()\n")
    script = (
        "from jitdialects.runtime.compile_server import CompileServer as Server\n"
        "server = Server(); print(server(b'').decode()); server.close()\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, check=True, cwd=tmp_path, env=environment, capture_output=True)
    assert ended.stdout.decode().startswith(str(tmp_path))


def test_the_caller_imports_no_compiler() -> None:
    script = (
        "import sys, numpy as np, jitdialects as jd\n"
        "f = jd.jit(lambda x: x * x + x)\n"
        "for _ in range(12): f(np.ones(4, np.float32))\n"
        "f.wait()\n"
        "f(np.ones(4, np.float32))\n"
        "assert jd.stats()['compiles'] == 1\n"
        "bad = {m.partition('.')[0] for m in sys.modules} & {'xdsl', 'llvmlite'}\n"
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_a_sentence_comes_back_where_it_cannot_be_compiled(server: CompileServer) -> None:
    assert "no array has the size -1" in str(
        CompileReply.decode(server(request(signature="main(f32[-1])"))).error
    )
    assert "cut off" in str(CompileReply.decode(server(b"garbage")).error)
    assert server.starts == 1


def test_a_killed_server_is_replaced(server: CompileServer) -> None:
    server(request())
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    assert CompileReply.decode(server(request())).error is None
    assert server.starts == 2


def test_a_server_that_dies_over_a_request_is_asked_once_more(
    server: CompileServer, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    play("import sys\nsys.exit('LLVM ERROR: no')\n")
    with pytest.raises(
        CompileError, match="ended over this request .exit status 1: LLVM ERROR: no"
    ):
        server(request())
    assert server.starts == 2
    monkeypatch.undo()
    assert CompileReply.decode(server(request("abs"))).error is None
    assert server.starts == 3
    with pytest.raises(CompileError, match="ended over this request"):
        server(request())
    assert server.starts == 3, "it is not tried again"
    expected = {"starts": 3, "deaths": 2, "refused": 1, "in_process": False}
    assert server.statistics() == expected
    assert stats()["compile_server"].keys() == expected.keys()


def test_a_server_that_does_not_answer_is_killed(play: Play) -> None:
    play("import time\ntime.sleep(600)\n")
    server = CompileServer(deadline=0.3)
    for _ in range(2):
        with pytest.raises(CompileError, match="did not answer within 0.3 s and was killed"):
            server(request())
        assert server.pid is None
    assert server.starts == 1


def test_servers_that_end_in_a_row_are_started_later_and_later_and_then_no_more(
    server: CompileServer, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(server._closed, "wait", pauses.append)
    play("raise SystemExit")
    with warnings.catch_warnings(record=True) as caught:
        for n in range(8):
            with pytest.raises(CompileError):
                server(request(signature=f"main(f32[{n}])"))
    assert server.starts == 10
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert [str(w.message)[:50] for w in caught] == [
        "jitdialects: the compile server ended 10 times in "
    ]
    with pytest.raises(
        CompileError, match="ended 10 times in a row; this process compiles nothing"
    ):
        server(request("abs"))


def test_a_server_that_ends_before_it_is_told_anything_has_ended_like_any_other(
    server: CompileServer, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(to: object, message: bytes) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(compile_server, "_send", broken)
    play("raise SystemExit(3)")
    with pytest.raises(CompileError, match="exit status 3"):
        server(request())
    assert (server.starts, server.deaths, server.is_apart) == (2, 2, True)


def test_no_descriptor_and_no_process_is_left_behind(server: CompileServer, play: Play) -> None:
    """benchmarks/runtime/server.py does it 200 times with the real one."""
    play(ECHO)

    def left() -> tuple[int, int]:
        mine = f"\nPPid:\t{os.getpid()}\n"
        status = (p.read_text() for p in Path("/proc").glob("[0-9]*/status") if p.exists())
        return len(os.listdir("/proc/self/fd")), sum(mine in text for text in status)

    server(b"x")
    before = left()
    for n in range(20):
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        assert server(b"%d" % n) == b"%d" % n
    assert server.starts == 21
    assert left() == before


def test_an_interrupted_request_leaves_no_reply_for_the_next(
    server: CompileServer, play: Play
) -> None:
    play(ECHO.replace("pass", "time.sleep(0.3 if data == b'slow' else 0)"))
    server(b"quick")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            server(b"slow")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert server(b"next") == b"next"
    assert server.starts == 2


def test_what_a_call_waits_for_comes_first_and_what_nobody_waits_for_last(
    server: CompileServer, play: Play, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(compile_server, "_SOON", math.inf)
    go, order = tmp_path / "go", tmp_path / "order"
    play(
        ECHO.replace("pass", "note(data)").replace(
            "receive()\nwhile",
            "def note(data):\n"
            f"    with open({str(order)!r}, 'ab') as file:\n"
            "        file.write(data + b' ')\n"
            f"    while data == b'first' and not os.path.exists({str(go)!r}):\n"
            "        time.sleep(0.005)\n\n\n"
            "import os\nreceive()\nwhile",
        )
    )
    threads = [threading.Thread(target=server, args=(b"first",))]
    threads[0].start()
    while not order.exists():
        time.sleep(0.005)
    for ask, data in ((server.when_idle, b"idle"), (server, b"turn"), (server.at_once, b"now")):
        threads.append(threading.Thread(target=ask, args=(data,)))
        threads[-1].start()
    while server._turns._waiting != [1, 1, 1]:
        time.sleep(0.005)
    go.touch()
    for thread in threads:
        thread.join(20)
    assert order.read_bytes().split() == [b"first", b"now", b"turn", b"idle"]


def test_a_call_does_not_wait_for_a_long_compile(server: CompileServer, play: Play) -> None:
    play(ECHO.replace("pass", "time.sleep(600 if data == b'long' else 0)"))
    server(b"start")

    def ask() -> None:
        with contextlib.suppress(CompileError):
            server(b"long")

    long = threading.Thread(target=ask, daemon=True)
    long.start()
    time.sleep(0.05)
    descriptors = len(os.listdir("/proc/self/fd"))
    assert server.at_once(b"now") == b"now"
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert long.is_alive()
    assert server.starts == 1


def test_memory_beyond_the_budget_is_an_error_and_another_server(
    server: CompileServer, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "compile_megabytes", 100)
    play(
        "import runpy, sys\n"
        "sys.argv[0] = 'main'\n"
        f"main = runpy.run_path({str(MAIN)!r})['main']\n"
        "hello = main.__globals__['_hello']\n"
        "def patched(connection):\n"
        "    folder = hello(connection)\n"
        "    from jitdialects.runtime import compiler\n"
        "    compiler.prepare = lambda level: None\n"
        "    compiler.compile_request = lambda data, accounted: bytes(len(data) << 20)[:3]\n"
        "    return folder\n"
        "main.__globals__['_hello'] = patched\n"
        "main()\n"
    )
    assert server(bytes(20)) == bytes(3)
    error = CompileReply.decode(server(bytes(200))).error
    assert error is not None and "takes more than 100 MB; config.compile_megabytes" in error
    assert server(bytes(20)) == bytes(3)
    assert server.starts == 2


def test_a_budget_that_changes_is_that_of_the_next_request(
    server: CompileServer, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(ECHO.replace("pass", "data = ' '.join(sys.argv[2:4]).encode()"))
    assert server(b"") == b"70.0 4096"
    monkeypatch.setattr(config, "compile_seconds", 5.0)
    monkeypatch.setattr(config, "compile_megabytes", 17)
    assert server(b"") == b"25.0 17"
    assert server.starts == 2


def test_the_timer_ends_a_server_that_holds_its_lock() -> None:
    script = (
        "import signal\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.2)\n"
        "10 ** 10 ** 8\n"  # one operation of CPython, which no other thread interrupts
    )
    ended = subprocess.run([sys.executable, "-c", script], timeout=60, check=False)
    assert ended.returncode == -signal.SIGALRM


PARENT = """
import sys, time
from jitdialects.runtime.compile_server import CompileServer
server = CompileServer()
server(bytes.fromhex(sys.argv[1]))
print(server.pid, flush=True)
time.sleep(600)
"""


def test_no_server_outlives_a_killed_parent() -> None:
    command = [sys.executable, "-c", PARENT, request().hex()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.kill()
    assert gone(pid)


STATES = {
    "starting": "stop()",
    "compiling": "receive(), receive(), stop()",
    "replying": "receive(), receive(), connection.sendall(struct.pack('<Q', 100) + b'half'), stop()",
}
STOPPING = f"""
import pathlib, runpy, threading
leave = runpy.run_path({str(MAIN)!r})["_leave_with_parent"]
threading.Thread(target=leave, args=(connection.fileno(),), daemon=True).start()


def stop():
    pathlib.Path(__file__).with_name("reached").touch()
    time.sleep(600)


"""
WAYS = {
    "return": (0, "pass"),
    "_exit": (3, "os._exit(3)"),
    "SIGTERM": (-signal.SIGTERM, "os.kill(os.getpid(), signal.SIGTERM); time.sleep(600)"),
    "SIGINT": (-signal.SIGINT, "os.kill(os.getpid(), signal.SIGINT); time.sleep(600)"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("state", STATES)
def test_a_process_may_end_in_any_way_in_any_state_of_its_server(
    state: str, way: str, tmp_path: Path
) -> None:
    head = ECHO.split("receive()\nwhile")[0]
    (tmp_path / "main.py").write_text(head + STOPPING + STATES[state])
    code, statement = WAYS[way]
    script = (
        "import os, pathlib, signal, sys, threading, time\n"
        # a shell starts what runs in the background with SIGINT ignored, and children inherit that
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from jitdialects.runtime import compile_server\n"
        "compile_server.MAIN = pathlib.Path(sys.argv[1])\n"
        "server = compile_server.default_server\n"
        "threading.Thread(target=server, args=(b'x',), daemon=True).start()\n"
        "reached = compile_server.MAIN.with_name('reached')\n"
        "while server.pid is None or not reached.exists(): time.sleep(0.005)\n"
        "print(server.pid, flush=True)\n"
        f"{statement}\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "main.py")]
    ended = subprocess.run(command, timeout=60, check=False, capture_output=True, text=True)
    assert ended.returncode == code
    assert (way == "SIGINT") == ("KeyboardInterrupt" in ended.stderr)
    assert way == "SIGINT" or not ended.stderr
    assert gone(int(ended.stdout))


def test_a_fork_does_not_keep_the_server_alive_and_has_one_of_its_own(
    server: CompileServer,
) -> None:
    service = CompileService(KernelCache(), server)  # which tells the server about forks
    server(request())
    pid = server.pid
    assert pid is not None
    there, here = os.pipe()
    child = os.fork()
    if not child:
        good = server.pid is None and CompileReply.decode(server(request())).error is None
        good = good and server.pid not in (None, pid)
        os.write(here, b"y" if good else b"n")
        time.sleep(600)
    try:
        assert os.read(there, 1) == b"y"
        assert CompileReply.decode(server(request())).error is None
        assert server.pid == pid
        server.close()
        assert gone(pid), "the child keeps the socket open"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert service.compiles == 0


def test_closing_in_the_middle_of_a_request(play: Play) -> None:
    play("import time\ntime.sleep(600)\n")
    server = CompileServer()
    caught: list[str] = []

    def ask() -> None:
        try:
            server(request())
        except CompileError as error:
            caught.append(error.message)

    thread = threading.Thread(target=ask)
    thread.start()
    while server.pid is None:
        time.sleep(0.01)
    server.close()
    thread.join(20)
    assert caught == ["this process compiles nothing any more"]


def test_closed_standard_streams_do_no_harm() -> None:
    script = (
        "import os, sys\n"
        "for fd in (0, 1, 2): os.close(fd)\n"
        "from jitdialects.runtime.compile_server import CompileServer\n"
        "from jitdialects.runtime.messages import CompileReply\n"
        "reply = CompileReply.decode(CompileServer()(bytes.fromhex(sys.argv[1])))\n"
        "os._exit(7 if reply.error is None else 1)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, request().hex()], timeout=60, check=False)
    assert ended.returncode == 7


def test_where_no_process_can_be_started_it_compiles_here(
    server: CompileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_server.sys, "executable", "/nonexistent/python")
    with pytest.warns(RuntimeWarning, match="compile server cannot be started .*compiling in this"):
        reply = CompileReply.decode(server(request()))
    assert reply.error is None
    with quiet():  # once is enough
        assert CompileReply.decode(server(request())).error is None
    assert server.starts == 0


def test_compiling_in_process_is_an_option(
    server: CompileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "compiler", "in-process")
    assert CompileReply.decode(server(request())).error is None
    assert server.pid is None


def test_in_process_no_garbage_is_collected_and_turns_are_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[bool, float]] = []

    def spy(data: bytes) -> bytes:
        seen.append((gc.isenabled(), sys.getswitchinterval()))
        return b""

    monkeypatch.setattr(compiler, "compile_request", spy)
    before = sys.getswitchinterval()
    compile_in_process(b"")
    assert seen == [(False, pytest.approx(0.05e-3))]
    assert (gc.isenabled(), sys.getswitchinterval()) == (True, before)


def test_a_call_goes_on_while_the_server_is_killed_again_and_again(server: CompileServer) -> None:
    builder = ProgramBuilder()
    main = builder.function("main", 1)
    main.returns(main.apply("negative", *main.parameters))
    vm = VM(
        builder.finish(),
        Policy(threshold=1, shapes="exact"),
        service=CompileService(KernelCache(), server),
    )
    for n in range(1, 9):
        x = np.ones(n, np.float32)
        for _ in range(3):
            assert (vm.run("main", x)[0] == -x).all()
        if server.pid is not None and n % 3 == 0:
            os.kill(server.pid, signal.SIGKILL)
    vm.wait()
    assert len(vm.service.cache) + len(vm.service.failures) == 8
    assert len(vm.service.cache) >= 5


def test_the_message_framing() -> None:
    left, right = socket.socketpair()
    left.sendall(compile_server.LENGTH.pack(3) + b"ab")
    left.sendall(b"c")
    assert compile_server.receive(right) == b"abc"
    left.close()
    with pytest.raises(EOFError):
        compile_server.receive(right)
