"""Rare diseases and their phenotypes: the Human Phenotype Ontology and its annotations by Orphanet.

Read, not shipped: ``hp.obo`` and ``phenotype.hpoa`` come from a package and are verified by hash. Labels,
synonyms and relations are used as they stand there; the release stands in the built file.
"""
