"""Tables: from the numbers of cells to files that a person reads, with the way back to the sources."""
