"""Evidence points (skeleton: names are binding, grading follows)."""

from remeasure.graders.base import Grader, MetricName, reading

HEADLINE = "hierarchical_required_recall"
BUCKETS = (
    "modality",
    "macro_pattern",
    "micro_pattern",
    "other",
    "cross_image_integration",
    "diagnostic_attribution",
)
BACKENDS = ("lexical", "embedding")
THRESHOLDS = (0.3, 0.35, 0.4, 0.5, 0.6)


def _det(backend: str) -> tuple[MetricName, ...]:
    names = [f"det_required_recall@{t}" for t in THRESHOLDS] + ["det_required_meanmaxsim"]
    names += [f"det_optional_recall@{t}" for t in THRESHOLDS] + ["det_optional_meanmaxsim"]
    names += ["det_mean_sent_groundedness", *(f"det_grounded_ratio@{t}" for t in THRESHOLDS)]
    names += ["det_image_grounded_meanmaxsim", *(f"det_image_grounded_recall@{t}" for t in THRESHOLDS)]
    names += ["det_hierarchical_required_recall"]
    names += [f"det_required_{bucket}_meanmaxsim" for bucket in BUCKETS]
    names += [f"det_required_{bucket}_recall@{t}" for bucket in BUCKETS for t in THRESHOLDS]
    return tuple(MetricName(f"{name}_{backend}", f"{name} ({backend})") for name in names)


METRICS = (
    MetricName(HEADLINE, "Hierarchical required recall"),
    MetricName("required_recall", "Required recall", if_none=0.0),
    MetricName("optional_recall", "Optional recall", if_none=0.0),
    MetricName("required_contradiction_rate", "Contradictions", better="low", if_none=0.0),
    MetricName("full_required_coverage", "Full coverage", if_none=0.0),
    MetricName("full_hierarchical_required_coverage", "Full hierarchical coverage"),
    MetricName("hierarchical_required_recall_drop", "Drop by hierarchy", better="low", kind="difference"),
    MetricName("hier_visual_gate_pass_rate", "Visual gate passed"),
    MetricName("hier_cross_gate_pass_rate", "Cross gate passed"),
    MetricName("hier_level1_visual_recall", "Level 1 recall"),
    MetricName("hier_level2_cross_recall_raw", "Level 2 recall"),
    MetricName("hier_level2_cross_recall_gated", "Level 2 recall, gated"),
    MetricName("hier_level3_diag_recall_raw", "Level 3 recall"),
    MetricName("hier_level3_diag_recall_gated", "Level 3 recall, gated"),
    *(MetricName(f"required_recall_{bucket}", f"Required recall: {bucket}") for bucket in BUCKETS),
    *(
        MetricName(
            f"judge_vs_det_required_recall_mae_{backend}", f"Judge against det ({backend})", better="low"
        )
        for backend in BACKENDS
    ),
    MetricName("det_image_coverage", "Images named"),
    MetricName("det_image_ref_out_of_range_rate", "Images named that are none", better="low"),
    MetricName("det_image_format_compliance", "Images labelled as asked"),
    MetricName("det_image_attribution_hallucination_rate", "Images named without ground", better="low"),
    MetricName("det_image_select_recall", "Decisive images named"),
    MetricName("det_image_select_precision", "Named images decisive"),
    MetricName("det_image_attribution_offtarget_rate", "Named images off target", better="low"),
    *(metric for backend in BACKENDS for metric in _det(backend)),
    MetricName("infer_fail_rate", "Failed requests", better="low"),
)


def _todo(case):
    return reading("ungraded", "not written yet")


class RubricGrader(Grader):
    headline = HEADLINE
    compares = False

    def method(self, options):
        return {}


JUDGE_RUBRIC = RubricGrader("judge_rubric", 1, True, _todo, _todo, METRICS)
