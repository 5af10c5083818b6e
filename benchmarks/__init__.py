"""Studies whose results are committed; each module is one command."""
