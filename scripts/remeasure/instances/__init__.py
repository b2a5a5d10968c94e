"""Instance retrieval: sets of photographs, what describes them, and rankings of them for a query."""
