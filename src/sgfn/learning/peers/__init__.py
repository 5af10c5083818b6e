"""Peers that flow networks are compared with: reinforcement learning and Markov chains."""
