"""Names that flags may take, for help and for the nearest name to suggest; the registries hold the things themselves.

Any of them may also be `module:name`, something of yours. A test compares these lists with the registries.
"""

NAMES: dict[str, tuple[str, ...]] = {
    "method": ("gfn", "random", "mh", "mars", "a2c", "ppo", "sac", "forecast"),
    "objective": ("tb", "db", "subtb", "kl", "eflow", "kl-entropy"),
    "form": ("marginal", "published", "blind"),
    "noise.kind": ("uniform", "confusion", "position", "hidden"),
    "net.encoder": ("mlp", "transformer"),
    "kl.flow": ("tb", "db", "subtb"),
    "entropy.base": ("tb", "db", "subtb", "kl"),
}
"""By the field that takes them."""

COMPARED = ("kl", "tb", "published-db", "blind-db", "random", "mh", "ppo", "sac")
"""What `compare` compares by default: ours, the published objective, one that ignores the noise, and peers."""
