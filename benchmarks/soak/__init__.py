"""Commands of sgfn under kills, damaged files and full disks: what they leave, and what they answer."""
