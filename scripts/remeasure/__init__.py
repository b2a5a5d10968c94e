"""The library behind Remeasure's scripts: stages as plain functions over files."""
