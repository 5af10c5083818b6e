"""Libraries of degenerate codons on the measured landscape of GB1."""
