"""Ranked lists of diagnoses: read out of a reply, matched with the right one, judged."""
