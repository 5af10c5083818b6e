"""Learning: rollouts, scores, updates, how steps are run, and the peers that flow networks are compared with."""
