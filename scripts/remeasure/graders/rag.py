"""Graders of systems that search documents and answer with citations."""

from remeasure.graders.rag_answers import JUDGE_RAG_ANSWER
from remeasure.graders.rag_numbers import NUMBER_MATCH
from remeasure.graders.rag_search import RANKED_DOCUMENTS

__all__ = ["JUDGE_RAG_ANSWER", "NUMBER_MATCH", "RANKED_DOCUMENTS"]
