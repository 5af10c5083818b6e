"""Commands of sgfn, each in a process of its own that is forked from one which has imported everything already.

    with ForkServer() as server:
        ended = server.run(["train", "grid", "--out", "run"], folder, signal=signal.SIGKILL, at=7)

A command takes a few hundredths of a second instead of seconds, sees the environment, limits and open files that it is
given, and can be sent a signal as it touches a file for the n-th time: the same moment whenever it is run.
"""

import atexit
import contextlib
import ctypes
import gc
import io
import json
import os
import pkgutil
import resource
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib import import_module
from mmap import mmap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).parents[2]
LIMIT = 120.0
"""Seconds after which a command is taken to hang."""
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
TOUCHES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod")
"""Audit events that change files, beside `open` for writing and fsync."""
LIBRARIES = (
    *("openpyxl", "pandas", "pandas.io.formats.csvs", "pyarrow.parquet", "scipy.optimize"),
    *("importlib.readers", "importlib.resources.readers"),
    *("matplotlib.backends.backend_svg", "matplotlib.backends.backend_agg", "PIL.PngImagePlugin", "PIL.BmpImagePlugin"),
    *("PIL.GifImagePlugin", "PIL.JpegImagePlugin", "PIL.PpmImagePlugin"),
    *("encodings.utf_8_sig", "encodings.ascii", "encodings.unicode_escape"),
)
"""What commands import when they first need it."""
LARGE_PAGES = {"PYTHONMALLOC": "malloc", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""Memory in pages of 2 MiB where Linux has them: a fork then takes a third of the time."""
ON_GPU = ("sgfn.nets.attention_kernel", "sgfn.learning.kernels")
"""Modules that commands import on a GPU alone; with triton they are a fifth of the memory, which every fork maps."""
BEGUN = 16
"""Byte of the counts that tells that a command is on its way: what it is sent before would hit us, not it."""
HUNG = -1000
"""Code of a command that was ended because it took too long."""
STOPPED = -2000
"""Code of a command that has stopped itself and waits for `go_on`."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A command and the circumstances under which it runs."""

    words: list[str]
    folder: str
    """The current folder."""
    env: dict[str, str | None] = field(default_factory=dict)
    """Variables that are set, or removed (None)."""
    signal: int = 0
    """What the command sends itself, 0 is nothing."""
    at: int = 0
    """The touch of a file at which it does so, counted from 1."""
    after: float = 0.0
    """Seconds after which the signal is sent from outside, where `at` is 0."""
    worker: bool = False
    """Whether the signal is for a worker of a comparison, and touches are counted there."""
    file_size: int | None = None
    """Largest file in bytes that may be written: a full disk."""
    memory: int | None = None
    """Bytes of memory that may be asked for, beyond those the command begins with."""
    closed: list[int] = field(default_factory=list)
    """Standard streams that are closed."""
    limit: float = LIMIT


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended."""

    code: int
    """Exit status; minus the signal that ended it; HUNG or STOPPED."""
    out: str
    err: str
    touches: int
    """How often it touched a file."""
    memory: int
    """Bytes of memory at the most, beyond what it was forked with."""
    process: int
    seconds: float
    cpu: float = 0.0
    """Seconds of processors, its workers' included."""


# The side that asks


class ForkServer:
    """The process that commands are forked from; a context that ends it."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        env = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg", **LARGE_PAGES}
        command = [sys.executable, "-P", "-m", "benchmarks.soak.forks"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True)

    def __enter__(self) -> "ForkServer":
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def run(self, words: list[str], folder: Path, **circumstances: Any) -> Ended:
        """Run a command to its end, or until it stops itself."""
        return self._ask(asdict(Request(words=words, folder=str(folder), **circumstances)))

    def go_on(self, process: int) -> Ended:
        """Let a command go on that has stopped itself, to its end."""
        return self._ask({"process": process})

    def _ask(self, request: dict[str, Any]) -> Ended:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("the process that commands are forked from has gone")
        return Ended(**json.loads(answer))


# The side that forks


class Running:
    """A command that was forked: its output as it comes, its touches, its end."""

    def __init__(self, request: Request) -> None:
        self.request, self.texts = request, {"out": b"", "err": b""}
        self.counts, self.memory, self.cpu = mmap(-1, 17), 0, 0.0
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        self.process = os.fork()
        if self.process == 0:
            _become(request, out_end, err_end, self.counts)
        os.close(out_end)
        os.close(err_end)
        self.pipes, self.alive = {out: "out", err: "err"}, os.pidfd_open(self.process)
        self.open, self.begun = set(self.pipes), time.monotonic()
        self.late = self.begun + request.limit
        self.due = time.monotonic() + request.after if request.after and not request.at else None

    def ended(self) -> Ended:
        """Wait until it ends or stops itself."""
        code, patience = None, 0.005 if self.request.signal else 0.1  # an end is seen at once, a stop is asked for
        while code is None:
            self._read(patience)
            code = self._look()
            now = time.monotonic()
            if code is None and self.due is not None and now >= self.due and self.counts[BEGUN]:
                self.due = None
                os.kill(self.process, self.request.signal)
            if code is None and now >= self.late:
                os.killpg(self.process, signal.SIGKILL)
                os.wait4(self.process, 0)
                code = HUNG
        if code != STOPPED:
            _reap_orphans(self.late)
            self._read(0.0)
            for handle in (*self.pipes, self.alive):
                os.close(handle)
        return self._told(code)

    def _look(self) -> int | None:
        """Code of a command that has ended or stopped; None while it runs."""
        found, status, usage = os.wait4(self.process, os.WNOHANG | os.WUNTRACED)
        if found == 0:
            return None
        self.memory = max(usage.ru_maxrss * 1024 - OWN_MEMORY, 0)
        self.cpu = usage.ru_utime + usage.ru_stime
        return STOPPED if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status)

    def _read(self, patience: float) -> None:
        """Take what the pipes hold; they are waited for so long at the most, and not after the command's end."""
        poll = select.poll()
        for handle in (*self.open, self.alive):
            poll.register(handle, select.POLLIN)
        while found := [(handle, event) for handle, event in poll.poll(1000 * patience) if handle in self.pipes]:
            for handle, event in found:
                part = os.read(handle, 2**16) if event & select.POLLIN else b""
                self.texts[self.pipes[handle]] += part
                if not part:
                    poll.unregister(handle)
                    self.open.remove(handle)
            patience = 0.0

    def _told(self, code: int) -> Ended:
        place = 8 if self.request.worker else 0
        return Ended(
            code=code,
            out=self.texts["out"].decode(errors="replace"),
            err=self.texts["err"].decode(errors="replace"),
            touches=int.from_bytes(self.counts[place : place + 8], "little"),
            memory=self.memory,
            process=self.process,
            seconds=time.monotonic() - self.begun,
            cpu=self.cpu,
        )


OWN_MEMORY = 0


def serve() -> None:
    """Answer requests until nobody asks any more."""
    global OWN_MEMORY
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: workers that a killed command leaves come here
    _import_everything()
    OWN_MEMORY = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    stopped: dict[int, Running] = {}
    while line := sys.stdin.readline():
        request = json.loads(line)
        if "process" in request:
            running = stopped.pop(request["process"])
            os.kill(running.process, signal.SIGCONT)
        else:
            running = Running(Request(**request))
        ended = running.ended()
        if ended.code == STOPPED:
            stopped[ended.process] = running
        answers.write(json.dumps(asdict(ended)) + "\n")
        answers.flush()
    for running in stopped.values():
        os.killpg(running.process, signal.SIGKILL)
    os._exit(0)


def _import_everything() -> None:
    """Import what any command needs, let workers of comparisons be forked too, and leave pictures as they fall."""
    import torch

    import sgfn.cli.commands
    from benchmarks.soak import quick_parser
    from sgfn.compare import workers

    quick_parser.install()

    for name in LIBRARIES:
        with contextlib.suppress(ImportError):  # an extra that is not installed
            import_module(name)
    for module in pkgutil.walk_packages(sgfn.__path__, "sgfn."):
        if not module.name.endswith("__main__") and not module.name.startswith(ON_GPU):
            import_module(module.name)

    torch.set_num_threads(1)
    import_module("matplotlib.layout_engine").ConstrainedLayoutEngine.execute = lambda self, figure: None
    import_module("matplotlib.axis").Axis.draw = lambda self, renderer: None  # ticks take half the time of a picture
    with contextlib.redirect_stderr(io.StringIO()):
        for verb in sgfn.cli.commands.COMMANDS:  # the parser remembers what it has once found out about a command
            for what in ([], ["grid"]):  # without it where it is asked for, flags are not compared with known ones
                sgfn.cli.commands.main([*verb.split(), *what, "--no-such-flag"])
    atexit._clear()  # what libraries want to tidy up takes longer than most commands
    gc.freeze()
    more = {"PIPE": subprocess.PIPE, "TimeoutExpired": subprocess.TimeoutExpired}
    workers.subprocess = SimpleNamespace(Popen=ForkedWorker, **more)  # pyright: ignore[reportAttributeAccessIssue]


def _reap_orphans(late: float) -> None:
    """Wait for processes that the command left behind; those that stay too long are ended."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    while left := [int(word) for word in children.read_text().split()]:
        for process in left:
            if _is_stopped(process):
                return
            if time.monotonic() >= late:
                os.kill(process, signal.SIGKILL)
            os.waitpid(process, os.WNOHANG)
        time.sleep(0.002)


def _is_stopped(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except FileNotFoundError:
        return False


# Inside the command


def _become(request: Request, out: int, err: int, counts: mmap) -> None:
    """Be the command: its folder, streams, variables, limits and signals; does not return."""
    code = 1
    try:
        os.setsid()
        _take_streams(out, err, request.closed)
        os.chdir(request.folder)
        for name, value in request.env.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
        if request.file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (request.file_size, request.file_size))
        if request.memory is not None:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            most = pages * resource.getpagesize() + request.memory
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        counting = count_touches(request, counts, 8 if request.worker else 0)
        if request.worker:
            WORKERS_BEGIN.append(counting)
        else:
            counting()
        obey_permissions()
        sys.argv = ["sgfn", *request.words]
        counts[BEGUN] = 1
        code = exit_status(_main)
    finally:
        os._exit(code)


def _main() -> None:
    """`sgfn WORDS`, or after `-c` a piece of Python."""
    from sgfn.cli.commands import main

    if sys.argv[1:2] == ["-c"]:
        sys.path.insert(0, str(Path.cwd()))
        exec(sys.argv[2], {"__name__": "__main__"})
    else:
        sys.exit(main())


def _take_streams(out: int, err: int, closed: list[int]) -> None:
    """Standard streams as a new interpreter has them: those that are closed are None."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, source in enumerate((nothing, out, err)):
        os.dup2(source, number)
    os.closerange(3, 256)
    names = ("stdin", "stdout", "stderr")
    for number, name in enumerate(names):
        mode = "r" if number == 0 else "w"
        setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False))
        if number in closed:
            os.close(number)
            setattr(sys, name, None)


def exit_status(command: Callable[[], Any]) -> int:
    """Run a command as an interpreter does that then ends; returns its exit status."""
    try:
        command()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        if isinstance(stop.code, str):
            sys.stderr.write(f"{stop.code}\n")
    except BaseException as error:
        if sys.stderr is not None and not sys.stderr.closed:
            traceback.print_exc()
        code = 130 if isinstance(error, KeyboardInterrupt) else 1
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except OSError:
            code = 120
    return code & 0xFF


def count_touches(request: Request, counts: mmap, place: int) -> Callable[[], None]:
    """A function that begins to count how often files below the current folder are touched, and sends the signal."""

    def begin() -> None:
        home, seen, fsync, owner = f"{Path.cwd()}{os.sep}", 0, os.fsync, os.getpid()

        def touch() -> None:
            nonlocal seen
            if os.getpid() != owner:  # a worker that was forked from here
                return
            seen += 1
            counts[place : place + 8] = seen.to_bytes(8, "little")
            if seen == request.at and request.signal:
                os.kill(os.getpid(), request.signal)

        def heard(event: str, details: tuple[Any, ...]) -> None:
            opened = event == "open" and isinstance(details[2], int) and details[2] & WRITES
            if (opened or event in TOUCHES) and _below(details[0], home):
                touch()

        def counted_fsync(file: Any) -> None:
            touch()
            fsync(file)

        sys.addaudithook(heard)
        os.fsync = counted_fsync

    return begin


def _below(path: Any, home: str) -> bool:
    return isinstance(path, str | bytes) and os.path.join(home, os.fsdecode(path)).startswith(home)  # noqa: PTH118


def obey_permissions() -> None:
    """Give up the right of the superuser to read and write what permissions forbid."""
    head = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None)
    if libc.capget(head, sets) == 0:
        for number in range(3):  # effective, permitted and inheritable rights: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            sets[number] &= ~0b110
        libc.capset(head, sets)


WORKERS_BEGIN: list[Callable[[], None]] = []
"""What a worker of a comparison calls first."""


class ForkedWorker:
    """A worker of a comparison, forked instead of started; as much of `subprocess.Popen` as comparisons use."""

    def __init__(self, args: list[str], *, stdout: Any, stderr: Any, env: dict[str, str], **_: Any) -> None:
        read, write = os.pipe()
        sys.stdout.flush()
        self.args, self.returncode = args, None
        self.process = os.fork()
        if self.process == 0:
            self._work(read, stdout.fileno(), env)
        os.close(read)
        self.stdin = os.fdopen(write, "wb")

    def _work(self, job: int, log: int, env: dict[str, str]) -> None:
        code = 1
        try:
            os.setsid()
            for number, source in enumerate((job, log, log)):
                os.dup2(source, number)
            os.closerange(3, 256)
            for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
                number = ("stdin", "stdout", "stderr").index(name)
                setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
            for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(stop, signal.default_int_handler if stop == signal.SIGINT else signal.SIG_DFL)
            os.environ.update(env)
            for begin in WORKERS_BEGIN:
                begin()
            from sgfn.compare.worker_process import main

            code = exit_status(lambda: sys.exit(main()))
        finally:
            os._exit(code)

    def poll(self) -> int | None:
        """Its exit status, None while it works."""
        return self._wait(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int | None:
        """Its exit status, waited for."""
        late = None if timeout is None else time.monotonic() + timeout
        while self._wait(0 if late is None else os.WNOHANG) is None:
            if late is not None and time.monotonic() >= late:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            time.sleep(0.005)
        return self.returncode

    def _wait(self, how: int) -> int | None:
        if self.returncode is None:
            found, status = os.waitpid(self.process, how)
            self.returncode = os.waitstatus_to_exitcode(status) if found else None
        return self.returncode

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.process, number)


if __name__ == "__main__":
    serve()
