"""Objectives: each a pure function (Scores, Episodes) -> one loss per trajectory, and an entry with its facts."""

from sgfn.objectives.registry import OBJECTIVES, ObjectiveEntry, objective_reads, reads_scores, scored_as

__all__ = ["OBJECTIVES", "ObjectiveEntry", "objective_reads", "reads_scores", "scored_as"]
