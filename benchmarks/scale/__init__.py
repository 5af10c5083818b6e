"""What a cluster costs and brings: measurements on this machine, and a model of them for larger ones."""
