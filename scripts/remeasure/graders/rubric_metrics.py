"""Names of the numbers about evidence points: of a judge's verdicts, of similarities, of images named."""

from remeasure.graders.base import MetricName
from remeasure.rubrics.overlap import THRESHOLDS
from remeasure.rubrics.points import BUCKETS
from remeasure.rubrics.similarity import BACKENDS

HEADLINE = "hierarchical_required_recall"
LEVELS = (
    ("hier_level1_visual_recall", "Level 1 recall"),
    ("hier_level2_cross_recall_raw", "Level 2 recall"),
    ("hier_level2_cross_recall_gated", "Level 2 recall, gated"),
    ("hier_level3_diag_recall_raw", "Level 3 recall"),
    ("hier_level3_diag_recall_gated", "Level 3 recall, gated"),
)
IMAGES = (
    MetricName("det_image_coverage", "Images named"),
    MetricName("det_image_ref_out_of_range_rate", "Images named that are none", better="low"),
    MetricName("det_image_format_compliance", "Images labelled as asked"),
    MetricName("det_image_attribution_hallucination_rate", "Images named without ground", better="low"),
    MetricName("det_image_select_recall", "Decisive images named"),
    MetricName("det_image_select_precision", "Named images decisive"),
    MetricName("det_image_attribution_offtarget_rate", "Named images off target", better="low"),
)
JUDGED = (
    MetricName(HEADLINE, "Hierarchical required recall"),
    MetricName("required_recall", "Required recall", if_none=0.0),
    MetricName("optional_recall", "Optional recall", if_none=0.0),
    MetricName("required_contradiction_rate", "Contradictions", better="low", if_none=0.0),
    MetricName("full_required_coverage", "Full coverage", if_none=0.0),
    MetricName("full_hierarchical_required_coverage", "Full hierarchical coverage"),
    MetricName("hierarchical_required_recall_drop", "Drop by hierarchy", better="low", kind="difference"),
    MetricName("hier_visual_gate_pass_rate", "Visual gate passed"),
    MetricName("hier_cross_gate_pass_rate", "Cross gate passed"),
    *(MetricName(name, title) for name, title in LEVELS),
    *(MetricName(f"required_recall_{bucket}", f"Required recall: {bucket}") for bucket in BUCKETS),
)


def _cosines(mean: str, recall: str, backend: str) -> list[MetricName]:
    """Return the mean of cosines, which may be below 0 and are no shares, and the shares above thresholds."""
    names = [f"{recall}@{threshold}" for threshold in THRESHOLDS]
    shares = [MetricName(f"{name}_{backend}", f"{name} ({backend})") for name in names]
    return [MetricName(f"{mean}_{backend}", f"{mean} ({backend})", kind="number"), *shares]


def _det(backend: str) -> list[MetricName]:
    gated = "det_hierarchical_required_recall"
    found = [
        *_cosines("det_required_meanmaxsim", "det_required_recall", backend),
        *_cosines("det_optional_meanmaxsim", "det_optional_recall", backend),
        *_cosines("det_mean_sent_groundedness", "det_grounded_ratio", backend),
        *_cosines("det_image_grounded_meanmaxsim", "det_image_grounded_recall", backend),
        MetricName(f"{gated}_{backend}", f"{gated} ({backend})"),
        MetricName(f"{gated}_drop_{backend}", f"{gated}_drop ({backend})", better="low", kind="difference"),
    ]
    for bucket in BUCKETS:
        found += _cosines(f"det_required_{bucket}_meanmaxsim", f"det_required_{bucket}_recall", backend)
    return found


METRICS = (
    *JUDGED,
    *(
        MetricName(
            f"judge_vs_det_required_recall_mae_{backend}", f"Judge against det ({backend})", better="low"
        )
        for backend in BACKENDS
    ),
    *IMAGES,
    *(metric for backend in BACKENDS for metric in _det(backend)),
    MetricName("infer_fail_rate", "Failed requests", better="low"),
)
NAMES = tuple(metric.name for metric in METRICS)
