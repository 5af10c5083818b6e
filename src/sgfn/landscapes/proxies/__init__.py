"""Proxies: a mean and an uncertainty for every sequence, fitted to measured ones."""

from sgfn.landscapes.proxies.base import Candidate, Prediction, ProxyReport
from sgfn.landscapes.proxies.fitting import fit_proxy
from sgfn.landscapes.proxies.proxy import Proxy
from sgfn.landscapes.proxies.registry import PROXIES, ProxyEntry

__all__ = ["PROXIES", "Candidate", "Prediction", "Proxy", "ProxyEntry", "ProxyReport", "fit_proxy"]
