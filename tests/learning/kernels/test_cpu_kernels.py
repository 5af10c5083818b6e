"""Kernels for CPUs beside the networks that they stand for: representations, gradients, whole rollouts."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from sgfn.config import DynamicsConfig, NetConfig
from sgfn.envs.sequence import SequenceEnv
from sgfn.learning import letters as letters_module
from sgfn.learning.compilation import compiler_itself, compiler_missing
from sgfn.learning.kept_letters import KeptLetters, make_letters
from sgfn.learning.kernels import cpp
from sgfn.learning.kernels.cpp import library
from sgfn.learning.kernels.cpu_mlp import KeptMLP
from sgfn.learning.kernels.cpu_transformer import KeptTransformer, transformer_fits
from sgfn.learning.letters import CompiledLetters
from sgfn.learning.optimisation import MAX_ROWS_UNTRANSPOSED, Optimiser
from sgfn.learning.rollout import act, no_reward, rollout_draws
from sgfn.learning.trajectory_scorer import CachedActor, TrajectoryScorer
from sgfn.nets.dynamics import make_noise_model
from sgfn.nets.encoders import MLP
from sgfn.nets.heads import FlowNets
from sgfn.nets.prefixes import encode_along
from sgfn.nets.transformer import CausalTransformer
from sgfn.noise import UniformSlip

CPU = torch.device("cpu")
pytestmark = pytest.mark.skipif(library("cpu_mlp") is None, reason="no C++ compiler")


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


def scrambled(module: torch.nn.Module) -> None:
    """Weights with no structure left, biases and scales of normalisation too."""
    generator = torch.Generator().manual_seed(3)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.4 if parameter.ndim < 2 else 1.0, generator=generator)
        if parameter.ndim == 2:
            parameter.data.mul_(parameter.shape[-1] ** -0.5)


def gradients(found: Tensor, module: torch.nn.Module, *more: Tensor) -> list[Tensor]:
    """Gradients of a weighed sum, by all weights that have one."""
    weights = torch.linspace(-1.0, 2.0, found.numel()).view(found.shape).cos()
    parameters = [*module.parameters(), *more]
    return list(torch.autograd.grad((found * weights).sum(), parameters, materialize_grads=True))


def read_by(kept: KeptTransformer, items: Tensor) -> KeptTransformer:
    """The kernel after it has read all items."""
    kept.start()
    for t in range(items.shape[1]):
        kept.letter(items[:, t].detach(), t)
    return kept


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(("width", "heads", "length", "batch"), [(16, 1, 3, 1), (32, 2, 18, 5), (96, 3, 35, 9)])
def test_a_transformer_letter_by_letter_is_the_full_pass(width: int, heads: int, length: int, batch: int) -> None:
    core = CausalTransformer(width=width, layers=2, heads=heads, length=length + 1)
    scrambled(core)
    items = torch.randn(batch, length, width, generator=torch.Generator().manual_seed(1)).requires_grad_()
    kept, rough = (read_by(KeptTransformer(core, batch, length, rounded=rounded), items) for rounded in (False, True))
    full, found = core(items), kept.representations(items)
    assert_close(found, full, rtol=1e-4, atol=1e-5)
    wanted = gradients(full, core, items)
    for one, two in zip(wanted, gradients(found, core, items), strict=True):
        assert_close(two, one, rtol=1e-3, atol=1e-4 * float(one.abs().max()))
    assert torch.equal(rough.representations(items), found)  # the gradient alone is rounded
    rounded = gradients(rough.representations(items), core, items)
    gaps = [float((two - one).norm() / one.norm()) for one, two in zip(wanted, rounded, strict=True)]
    assert 1e-4 < max(gaps) < 0.02  # bfloat16 has eight binary digits
    core.blocks[0].get_parameter("attention.read.weight").data.mul_(1.1)
    kept.start()
    assert not torch.allclose(kept.letter(items[:, 0].detach(), 0), full[:, 0], atol=1e-3)


def test_weights_that_an_optimiser_keeps_transposed_are_read_as_they_lie() -> None:
    core = CausalTransformer(width=16, layers=1, heads=1, length=MAX_ROWS_UNTRANSPOSED + 2)
    Optimiser([(list(core.parameters()), 1.0)], 0.0, CPU)
    assert core.positions.stride(1) != 1  # of many positions
    items = torch.randn(3, core.length, 16, generator=torch.Generator().manual_seed(1))
    found = read_by(KeptTransformer(core, 3, core.length), items).representations(items)
    assert_close(found, core(items), rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(("activation", "layers", "width"), [("relu", 1, 16), ("gelu", 2, 48), ("silu", 3, 32)])
@pytest.mark.parametrize("stop", [False, True])
def test_an_mlp_letter_by_letter_encodes_all_prefixes(activation: str, layers: int, width: int, stop: bool) -> None:
    env = SequenceEnv(length=70, alphabet="ACGT", noise=UniformSlip(alpha=0.1), stop=stop)
    encoder = MLP(env.features, width, layers, activation)
    scrambled(encoder)
    batch = act(env, lambda s: torch.zeros(len(s), env.actions), no_reward, rollout_draws(env, 5, torch.Generator()))
    kept, letters = KeptMLP(encoder, env, 5, 70), batch.states[:, -1]
    kept.start()
    for t in range(70):
        kept.letter(letters[:, t - 1], t)
    full, found = encode_along(encoder, env, batch.states[:, :-1]), kept.representations(letters[:, :-1])
    assert_close(found, full, rtol=1e-4, atol=1e-4)
    wanted = gradients(full.contiguous(), encoder)
    for one, two in zip(wanted, gradients(found, encoder), strict=True):
        assert_close(two, one, rtol=1e-3, atol=1e-4 * float(one.abs().max()))
    others = kept.representations(letters[:, :-1].flip(0))
    assert not torch.allclose(gradients(others, encoder)[0], wanted[0], atol=1e-3)


@pytest.mark.parametrize("encoder", ["transformer", "mlp"])
@pytest.mark.parametrize("stop", [False, True])
def test_rollouts_are_those_of_the_networks_and_are_given_once(
    encoder: str, stop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters_module, "CompiledSteps", lambda function, *_, **__: function)
    env = SequenceEnv(length=9, alphabet="ACGT", noise=UniformSlip(alpha=0.3), stop=stop)
    nets = FlowNets(env, NetConfig(encoder=encoder, hidden=32, layers=2, heads=2), joint_backward=True)  # reads the end
    scrambled(nets)
    draws = rollout_draws(env, 6, torch.Generator().manual_seed(0))
    made = make_letters(env, nets, CPU)
    assert isinstance(made, KeptLetters)
    actor = CachedActor(nets, make_noise_model(env, DynamicsConfig()), made.whole_rollout)
    plain, batch = act(env, nets.log_policy, no_reward, draws), act(env, actor, no_reward, draws)
    for name in ("states", "valid"):
        assert torch.equal(getattr(batch, name), getattr(plain, name))
    assert torch.equal(batch.intended[batch.valid], plain.intended[plain.valid])  # what padding means is never read
    assert made.representations(plain) is None  # not the tensors that it made
    again = act(env, actor, no_reward, draws)
    read = made.representations(again)
    assert made.representations(again) is None
    full = TrajectoryScorer(nets, None).heads(batch.states)
    kept = TrajectoryScorer(nets, None, read).heads(batch.states)
    assert_close(kept.log_flow, full.log_flow, rtol=1e-4, atol=1e-4)
    assert_close(kept.log_policy, full.log_policy, rtol=1e-4, atol=1e-4)


def test_what_the_kernels_do_not_take_is_left_to_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    env = SequenceEnv(length=9, alphabet="ACGT", noise=UniformSlip(alpha=0.3))
    narrow = FlowNets(env, NetConfig(encoder="transformer", hidden=32, layers=1, heads=4))  # heads of 8 entries
    assert type(make_letters(env, narrow, CPU)) is CompiledLetters
    assert make_letters(env, FlowNets(env, NetConfig(hidden=20, layers=1)), CPU) is None
    own = FlowNets(env, NetConfig(hidden=32), encoder=torch.nn.Linear(env.features, 32))
    assert make_letters(env, own, CPU) is None
    assert not transformer_fits(CausalTransformer(width=16, layers=1, heads=1, length=2).double())


@pytest.fixture
def not_compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A folder of the test's own where kernels are kept, none yet."""
    monkeypatch.setattr(cpp, "compiled_folder", lambda: tmp_path)
    library.cache_clear()
    yield tmp_path
    library.cache_clear()
    cpp.REFUSED.clear()


def test_a_compiler_of_two_words_is_called_as_a_shell_does(not_compiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As CXX="ccache g++"."""
    wrapper = not_compiled / "wrap it"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> "{not_compiled}/calls"\nexec "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", f"'{wrapper}' {shutil.which('g++')}")
    assert library("cpu_mlp") is not None
    assert "cpu_mlp.cpp" in (not_compiled / "calls").read_text()
    assert compiler_itself() == shutil.which("g++")  # what torch is told
    assert not cpp.refused()


@pytest.mark.parametrize(
    ("command", "says"), [("nowhere g++", "'nowhere g\\+\\+'.* is not there"), ("false", "'false' failed")]
)
def test_without_a_compiler_steps_run_without_kernels_and_say_why(
    command: str, says: str, not_compiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", command)
    env = SequenceEnv(length=9, alphabet="ACGT", noise=UniformSlip(alpha=0.3))
    assert make_letters(env, FlowNets(env, NetConfig(hidden=32, layers=1)), CPU) is None
    (line,) = cpp.refused()
    assert re.search(says, line)
    assert bool(compiler_missing(CPU)) == command.startswith("nowhere")


def test_libraries_are_kept_where_torch_keeps_what_it_compiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for user in ("ada", r"lab\ada:1"):
        monkeypatch.setenv("LOGNAME", user)
        monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
        ours = cpp.compiled_folder()
        assert str(ours) == cache_dir()  # which sets the variable
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "kept")
    assert str(cpp.compiled_folder()) == cache_dir() == str(tmp_path / "kept")
