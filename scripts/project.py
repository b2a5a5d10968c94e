"""Stub: project is not written yet."""

raise SystemExit("error: project.py is not written yet")
