"""Files of fitted proxies: named tensors (safetensors), which hold no code."""

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save

from sgfn.config.files import replacing
from sgfn.config.reading import located, read_bytes
from sgfn.landscapes.measurements import Measurements
from sgfn.landscapes.proxies.proxy import Proxy

FIELD = "proxy.file"


def write_proxy(proxy: Proxy, path: Path) -> None:
    """Write a proxy to a file that is whole or absent."""
    with replacing(path) as aside:
        aside.write_bytes(save(proxy.to_tensors()))


def read_proxy(path: Path, measurements: Measurements | None = None, *, trust: bool = False) -> Proxy:
    """The proxy in a file; raises where it was fitted to other letters or lengths than the measurements have."""
    name = f"{FIELD} {path}"
    try:
        found = Proxy.from_tensors(load(read_bytes(path, name)), trust=trust)
    except (SafetensorError, ValueError) as error:
        raise located(name, f"no proxy of ours ({error}); fit it again") from None
    if measurements is None:
        return found
    if found.alphabet != measurements.alphabet:
        raise located(name, f"was fitted to the letters {found.alphabet}, not {measurements.alphabet}; fit it again")
    if found.max_length < measurements.max_length:
        raise located(name, f"was fitted up to {found.max_length} letters, not {measurements.max_length}; fit it again")
    return found
