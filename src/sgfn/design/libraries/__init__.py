"""Libraries of degenerate codons: the intention is a mixture, the outcome a residue."""
