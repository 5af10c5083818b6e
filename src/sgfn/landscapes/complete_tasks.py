"""Tasks `gb1` and `mpsa`: measured landscapes in which what was not measured scores zero."""

import numpy as np
import torch

from sgfn.config import TrainConfig
from sgfn.landscapes import complete_tables as tables
from sgfn.landscapes.table import TableLandscape
from sgfn.landscapes.task import Task, assemble, sequences


def gb1(name: str, config: TrainConfig) -> Task:
    """four sites of protein G domain B1, fitness over its maximum (Wu et al. 2016)"""
    fitness = np.nan_to_num(tables.gb1_fitness())
    env = sequences(config, length=tables.GB1_LENGTH, alphabet=tables.GB1_LETTERS)
    landscape = TableLandscape(torch.from_numpy(fitness / fitness.max()), vocab=env.vocab, mode_level=0.5)
    summary = "four sites of protein G domain B1, fitness over its maximum (Wu et al. 2016)"
    return assemble(name, config, env, landscape, 3.0, summary)


def mpsa(name: str, config: TrainConfig) -> Task:
    """RNA 9-mers, spliced share of transcripts relative to the consensus (Wong et al. 2018)"""
    share = np.nan_to_num(10.0 ** tables.mpsa_activity() / 100.0)
    env = sequences(config, length=tables.MPSA_LENGTH, alphabet=tables.MPSA_LETTERS)
    landscape = TableLandscape(torch.from_numpy(share), vocab=env.vocab, mode_level=0.9)
    summary = "RNA 9-mers, spliced share of transcripts relative to the consensus (Wong et al. 2018)"
    return assemble(name, config, env, landscape, 3.0, summary)
