"""Kernels written by hand for a GPU; each has a twin in plain PyTorch that it is tested against."""
