"""The state after the last whole step, for runs whose steps call code that is not ours: it may fail in the middle."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor

from sgfn.learning.learner import Learner, NonFiniteError
from sgfn.runs.trust import named_code, words_of

State = dict[str, Tensor]


def calls_others_code(learner: Learner) -> bool:
    """Whether steps call code that is not ours: named in the settings, or a part of the task."""
    task = learner.task
    parts = [learner, task.landscape, getattr(task.landscape, "function", None), task.env, task.env.noise]
    homes = [str(part.__module__).partition(".")[0] for part in parts if part is not None]
    return bool(named_code(words_of(task.name, learner.config))) or any(home != "sgfn" for home in homes)


def copy_state(learner: Learner, state: State) -> None:
    """Put the present state of a learner into copies, which are made where there are none yet."""
    for name, value in learner.state().items():
        if name in state:
            state[name].copy_(value)
        else:
            state[name] = value.clone()


@contextmanager
def kept_on_failure(learner: Learner, state: State, write: Callable[[State], None]) -> Iterator[None]:
    """Write the state from before a step where the step, or what is judged after it, raises anything.

    A step that failed has drawn random numbers, and may have changed some of the weights: a run that continues from the
    state before it has the numbers of one that was never disturbed. `state` is where copies are kept, step after step.
    """
    copy_state(learner, state)
    try:
        yield
    except NonFiniteError:
        raise  # the step before may be as bad: the last checkpoint stays
    except BaseException as error:
        if all(bool(value.isfinite().all()) for value in state.values() if value.is_floating_point()):
            write({name: value.contiguous() for name, value in state.items()})  # weights may lie transposed
            error.add_note(f"the run is kept as it was after step {int(state['self.done']):,}")
        raise
