"""Cases composed by a rule: real diseases and phenotypes, invented patients, pictures with labels to read."""
