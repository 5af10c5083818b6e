"""One sequence from a file, or written out where a file's name would stand."""

from pathlib import Path

from sgfn.config.reading import read_text


def read_sequence(value: str, flag: str) -> str:
    """The one sequence in a file (plain text or FASTA); a value that is no file is the sequence itself."""
    path = Path(value)
    try:
        there = path.exists()
    except OSError:  # longer than any name of a file
        there = False
    if not there:
        if not value.isalnum():
            raise ValueError(f"{flag} {value}: no such file, and no sequence: name a file with one sequence")
        return value
    lines = [line.strip() for line in read_text(path, f"{flag} {value}").splitlines()]
    named = sum(line.startswith(">") for line in lines)
    letters = "".join(line for line in lines if line and not line.startswith(">"))
    if not letters.isalnum() or named > 1 or (not named and sum(map(bool, lines)) > 1):
        raise ValueError(f"{flag} {value}: must hold one sequence of letters, as plain text or FASTA")
    return letters
