"""Libraries of degenerate codons: the intention is a mixture, the outcome a residue."""

from sgfn.design.libraries.codons import Menu, Supply, standard_menu
from sgfn.design.libraries.designing import LibraryConfig, LibraryDesign, design_library
from sgfn.design.libraries.library import Library, make_library, parse_library
from sgfn.design.libraries.mixture import FoundPool, choose_pool
from sgfn.design.libraries.scores import DrawnScore, PairScore, TableScore
from sgfn.design.libraries.search import FoundLibrary, Goal, choose_library
from sgfn.design.libraries.supplies import read_supply
from sgfn.design.libraries.template import Template
from sgfn.design.libraries.values import LibraryValue, value_library

__all__ = [
    "DrawnScore",
    "FoundLibrary",
    "FoundPool",
    "Goal",
    "Library",
    "LibraryConfig",
    "LibraryDesign",
    "LibraryValue",
    "Menu",
    "PairScore",
    "Supply",
    "TableScore",
    "Template",
    "choose_library",
    "choose_pool",
    "design_library",
    "make_library",
    "parse_library",
    "read_supply",
    "standard_menu",
    "value_library",
]
