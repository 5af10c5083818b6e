"""Run folders: training into them, checkpoints, and what is evaluated and sampled from them."""
