"""Instance retrieval: sets of photographs, what they are described by, and rankings of them for a query photo."""
