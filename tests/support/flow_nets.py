"""Networks with the heads that a form needs."""

from sgfn.config import NetConfig
from sgfn.envs import Env
from sgfn.learning.forms import form_entry
from sgfn.nets.heads import FlowNets


def flow_nets(env: Env, form: str, config: NetConfig, thought: int = 0) -> FlowNets:
    entry = form_entry(form)
    heads = {"joint_backward": entry.joint_backward, "outcome_policy": entry.outcome_policy}
    return FlowNets(env, config, thought, **heads)
