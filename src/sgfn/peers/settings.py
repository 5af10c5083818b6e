"""Settings that only flow networks have a use for."""

from sgfn.config import TrainConfig


def refuse_unused(config: TrainConfig) -> None:
    """Say so, rather than leave out in silence what somebody asked for."""
    asked = {
        "has no memory of an episode: leave --thought.layers at 0": config.thought.layers > 0,
        "has no use for known objects: leave --offline.share at 0": config.offline.share > 0,
        "does not follow the entropy ratio: use --exploration constant": config.exploration == "entropy",
    }
    for reason, found in asked.items():
        if found:
            raise ValueError(f"method {config.method!r} {reason}")
