"""Methods that flow networks are compared with: reinforcement learning (a2c, ppo, sac) and Markov chains."""
