"""AMES: scores whether two photographs show the same thing, by local descriptors (Suma et al., 2024)."""
