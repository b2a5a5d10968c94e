"""Opening ONNX models: on the CPU, one thread per call, so that a result depends on nothing but its input."""

from pathlib import Path

from remeasure.errors import RemeasureError


def open_session(model: Path):
    """Open a model.

    Raises:
        RemeasureError: missing, or not an ONNX model.
    """
    if not Path(model).is_file():
        raise RemeasureError(f"{model}: is missing; run the target that makes it: snakemake -c1 {model}")
    return session_of(str(model), str(model))


def session_of(model: str | bytes, place: str):
    """Open a model from a path or from its bytes.

    Args:
        model: path or content.
        place: the file that it comes from, for the message.

    Raises:
        RemeasureError: not an ONNX model.
    """
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as states

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except (states.InvalidProtobuf, states.InvalidGraph, states.Fail, states.InvalidArgument) as error:
        reason = str(error).splitlines()[0][:160]
        raise RemeasureError(
            f"{place}: not a usable ONNX model ({reason}); delete it and run snakemake -c1 {place}"
        ) from None
