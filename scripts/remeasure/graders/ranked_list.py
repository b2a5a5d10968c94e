"""Ranked lists of diagnoses (skeleton: names are binding, grading follows)."""

from remeasure.graders.base import Grader, MetricName, reading

RECALL_AT = (1, 3, 5, 10)
HEADLINE = "recall@1"
METRICS = (
    *(MetricName(f"recall@{k}", f"Recall@{k}") for k in RECALL_AT),
    MetricName("mrr", "MRR"),
    MetricName("mr", "MR", better="low", kind="number", if_none=0.0, shows_n=True),
    MetricName("hit_rate", "Hit rate"),
    MetricName("parse_fail_rate", "Parse failures", better="low"),
    MetricName("infer_fail_rate", "Failed requests", better="low"),
)
JUDGED = (
    MetricName("judge_score", "Judge score"),
    MetricName("judge_presence", "Judge: in the list"),
    MetricName("judge_top1", "Judge: first"),
    MetricName("judge_typematch", "Judge: type match (0-3)", kind="number"),
    MetricName("judge_specificity", "Judge: specific"),
    MetricName("judge_coherence", "Judge: coherent"),
)


def _todo(case):
    return reading("ungraded", "not written yet")


class RankedListGrader(Grader):
    headline = HEADLINE


RANKED_LIST = RankedListGrader("ranked_list", 1, False, _todo, _todo, METRICS)
JUDGE_RANKED_LIST = RankedListGrader("judge_ranked_list", 1, True, _todo, _todo, METRICS + JUDGED)
