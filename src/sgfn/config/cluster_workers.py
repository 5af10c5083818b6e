"""Workers that are actors of a Ray cluster, for `config.processes.Pool`."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Lock
from typing import Any

from sgfn.config.cluster import Needs, connect
from sgfn.config.processes import Answer, Make, TookTooLong, WorkerLost, answered, failure_of, hiring, raise_failure
from sgfn.config.user_code import is_users


class Answerer:
    """Body of an actor: answers requests by what it was told to make."""

    def __init__(self, made: bytes) -> None:
        import ray.cloudpickle as pickle

        self.answer: Answer | None = None
        self.failed = None
        try:
            self.answer = pickle.loads(made)()
        except BaseException as error:
            self.failed = failure_of(error)

    def ready(self) -> None:
        """Return when the actor is made."""

    def ask(self, request: Any) -> tuple[bool, Any]:
        """Whether the request could be answered, and the answer or why not."""
        return answered(self.answer, self.failed, request)


class ClusterWorker:
    """An actor of a Ray cluster: made when it is started, and again when it was lost."""

    def __init__(self, make: Make, *, ray: Any, needs: Needs) -> None:
        self.make, self.ray, self.needs, self.actor, self.closed = make, ray, needs, None, False

    def start(self) -> None:
        """Make the actor and wait until it has a place in the cluster."""
        if self.closed:
            raise WorkerLost("the workers are closed")
        if self.actor is None:
            options = {"num_cpus": self.needs.cpus, "num_gpus": self.needs.gpus, "max_restarts": 0}
            self.actor = self.ray.remote(Answerer).options(**options).remote(_pickled(self.ray, self.make))
            try:
                self.ray.get(self.actor.ready.remote())
            except self.ray.exceptions.RayError as error:
                self._end()
                raise WorkerLost(_reason(error)) from error

    def ask(self, request: Any, timeout: float | None) -> Any:
        """The answer to a request."""
        self.start()
        assert self.actor is not None
        try:
            worked, answer = self.ray.get(self.actor.ask.remote(request), timeout=timeout)
        except self.ray.exceptions.GetTimeoutError as error:
            self._end()
            raise TookTooLong from error
        except self.ray.exceptions.RayError as error:
            self._end()
            raise WorkerLost(_reason(error)) from error
        if not worked:
            raise_failure(answer)
        return answer

    def close(self) -> None:
        """Kill the actor."""
        self.closed = True
        self._end()

    def _end(self) -> None:
        actor, self.actor = self.actor, None
        if actor is not None and self.ray.is_initialized():
            self.ray.kill(actor)


class ClusterHire:
    """Hires workers on a cluster; the connection is made when it is asked for, or when the first one is hired."""

    def __init__(self, address: str, needs: Needs, until: ExitStack) -> None:
        self.address, self.needs, self.until, self.ray, self.lock = address, needs, until, None, Lock()

    def open(self) -> Any:
        """The `ray` module, connected until the stack ends."""
        with self.lock:
            if self.ray is None:
                self.ray = self.until.enter_context(connect(self.address))
            return self.ray

    def __call__(self, make: Make) -> ClusterWorker:
        """A worker on the cluster."""
        return ClusterWorker(make, ray=self.open(), needs=self.needs)


@contextmanager
def on_cluster(address: str | None, needs: Needs) -> Iterator[None]:
    """Hire workers on a Ray cluster while the block runs; None hires processes of this machine."""
    if address is None:
        yield
        return
    with ExitStack() as until, hiring(ClusterHire(address, needs, until)):
        yield


def _reason(error: Exception) -> str:
    """Why an actor was lost, in a few words."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"was lost ({lines[0][:200] if lines else type(error).__name__})"


def _pickled(ray: Any, make: Make) -> bytes:
    """What is to be made, with the code of a user's own module in it: other machines do not have that file."""
    home = sys.modules.get(getattr(_innermost(make), "__module__", None) or "")
    users = home is not None and home.__name__ != "__main__" and is_users(getattr(home, "__file__", None) or "<none>")
    if not users:
        return ray.cloudpickle.dumps(make)
    ray.cloudpickle.register_pickle_by_value(home)
    try:
        return ray.cloudpickle.dumps(make)
    finally:
        ray.cloudpickle.unregister_pickle_by_value(home)


def _innermost(make: Any) -> Any:
    """The function that a chain of partials is made around."""
    while isinstance(make, partial):
        make = make.args[0] if make.args else make.func
    return make
