"""Faster backends for some environments and networks; each is tested against the general one in plain PyTorch."""
