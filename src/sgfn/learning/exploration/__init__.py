"""Ways to explore: each one file behind one seam, chosen by name and joined by `+`."""
