"""sgfn: Stochastic Generative Flow Networks."""
