"""Studies: pure functions that say what is special about each published table."""
