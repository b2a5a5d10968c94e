"""Which objects a caption mentions: words of a lexicon found in text, and what follows for image triplets."""
