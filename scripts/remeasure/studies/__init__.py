"""Studies: one module of pure functions each; stages look them up by name."""
