"""EfficientNet-Lite0 from a torch weight file to ONNX, without torch and without running its pickle.

The old torch file format is a pickle of a dictionary of tensors, whose numbers follow as raw arrays. A
pickle can call any function; this reader knows three harmless names and refuses everything else.
"""

import pickle
import struct
from collections import OrderedDict
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np

from remeasure.errors import RemeasureError

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
# What a damaged or hostile pickle raises inside the unpickler.
_PICKLE_ERRORS = (
    pickle.UnpicklingError,
    EOFError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    MemoryError,
)
_STORAGES = {"FloatStorage": "<f4", "LongStorage": "<i8"}
BATCH_NORM_EPSILON = 1e-3


class Block(NamedTuple):
    """A stage of the network: ``repeats`` inverted bottlenecks, the stride only in the first."""

    kernel: int
    stride: int
    expand: int
    channels: int
    repeats: int


STEM_CHANNELS, HEAD_CHANNELS = 32, 1280
BLOCKS = (
    Block(3, 1, 1, 16, 1),
    Block(3, 2, 6, 24, 2),
    Block(5, 2, 6, 40, 2),
    Block(3, 2, 6, 80, 3),
    Block(5, 1, 6, 112, 3),
    Block(5, 2, 6, 192, 4),
    Block(3, 1, 6, 320, 1),
)
"""Source: EfficientNet-Lite0, TensorFlow model garden 2020."""
N_CLASSES = 1000
LOCAL_STAGE = 4
"""Stage whose map (112 channels, a sixteenth of the input's size) is the second output."""


class _Storage(NamedTuple):
    key: str
    dtype: str
    count: int


class _Tensor(NamedTuple):
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _rebuild_tensor(storage, offset, shape, strides, *_) -> _Tensor:
    numbers = (offset, *shape, *strides)
    if not isinstance(storage, _Storage) or not all(isinstance(n, int) and n >= 0 for n in numbers):
        raise pickle.UnpicklingError("a tensor that is not made of a storage and whole numbers")
    if len(shape) != len(strides) or len(shape) > 8:
        raise pickle.UnpicklingError("a tensor whose shape and strides differ in length")
    return _Tensor(storage, offset, tuple(shape), tuple(strides))


class _Unpickler(pickle.Unpickler):
    """Knows ordered dictionaries, torch's tensor record and the names of number types; nothing else."""

    def find_class(self, module: str, name: str):
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if module == "torch" and name in _STORAGES:
            return name
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no weight file needs")

    def persistent_load(self, pid) -> _Storage:
        match pid:
            case ("storage", str(kind), str(key), str(), int(count), None) if (
                kind in _STORAGES and count >= 0
            ):
                return _Storage(key, _STORAGES[kind], count)
        raise pickle.UnpicklingError("a storage record of unknown form")


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """Read the tensors of a weight file in torch's format before version 1.6.

    Strides are honoured: convolution weights need not lie in memory in the order of their axes.

    Returns:
        Name to array, float32 or int64.

    Raises:
        RemeasureError: missing, damaged, another format, or a pickle that wants to do more than describe
            tensors. Nothing that the file names is imported or called.
    """
    try:
        stream = BytesIO(Path(path).read_bytes())
    except OSError as error:
        raise RemeasureError(f"{path}: cannot be read ({error.strerror}); rerun fetch_source") from None
    try:
        found = [_Unpickler(stream).load() for _ in range(3)]
        if found[0] != MAGIC or found[1] != PROTOCOL or found[2].get("little_endian") is not True:
            raise pickle.UnpicklingError("it is not a little-endian torch file of the format before 1.6")
        tensors = _Unpickler(stream).load()
        keys = _Unpickler(stream).load()
        storages = _read_storages(stream, tensors, keys)
        return {name: _array(tensor, storages) for name, tensor in tensors.items()}
    except _PICKLE_ERRORS as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RemeasureError(
            f"{path}: refused as a weight file: {reason}; delete it and fetch the file "
            "with the expected SHA-256"
        ) from None


def _read_storages(stream: BytesIO, tensors, keys) -> dict[str, np.ndarray]:
    """Read the raw numbers behind the pickles: per storage an 8-byte count, then the values."""
    if not isinstance(tensors, dict) or not all(isinstance(tensor, _Tensor) for tensor in tensors.values()):
        raise pickle.UnpicklingError("it is not a dictionary of tensors")
    declared = {tensor.storage.key: tensor.storage for tensor in tensors.values()}
    if sorted(declared) != sorted(keys):
        raise pickle.UnpicklingError("its list of storages does not fit its tensors")
    storages = {}
    for key in keys:
        storage = declared[key]
        size = storage.count * np.dtype(storage.dtype).itemsize
        head, data = stream.read(8), stream.read(size)
        if len(head) != 8 or struct.unpack("<q", head)[0] != storage.count or len(data) != size:
            raise pickle.UnpicklingError(f"storage {key} is cut off or of another size than declared")
        storages[key] = np.frombuffer(data, dtype=storage.dtype)
    return storages


def _array(tensor: _Tensor, storages: dict[str, np.ndarray]) -> np.ndarray:
    """Lay a tensor out in the order of its axes."""
    flat = storages[tensor.storage.key]
    reach = tensor.offset + sum(
        (n - 1) * stride for n, stride in zip(tensor.shape, tensor.strides, strict=True)
    )
    if 0 in tensor.shape or reach >= len(flat):
        raise pickle.UnpicklingError("a tensor reaches beyond its storage")
    if np.prod(tensor.shape, dtype=np.float64) > len(flat):
        raise pickle.UnpicklingError("a tensor has more values than its storage")
    size = flat.dtype.itemsize
    view = np.lib.stride_tricks.as_strided(
        flat[tensor.offset :], tensor.shape, [stride * size for stride in tensor.strides], writeable=False
    )
    return np.ascontiguousarray(view)


def fold(
    kernel: np.ndarray, gamma: np.ndarray, beta: np.ndarray, mean: np.ndarray, variance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Fold a batch norm into the convolution before it.

    Args:
        kernel: shape (out, in, height, width).
        gamma: scale per output channel; ``beta`` shift, ``mean`` and ``variance`` running statistics.
        beta: as above.
        mean: as above.
        variance: as above.

    Returns:
        (kernel, bias), float32, that give norm(convolution(x)).
    """
    scale = gamma.astype(np.float64) / np.sqrt(variance.astype(np.float64) + BATCH_NORM_EPSILON)
    folded = kernel.astype(np.float64) * scale[:, None, None, None]
    return folded.astype(np.float32), (beta - mean * scale).astype(np.float32)


class _Graph:
    """Collects nodes and numbers of the ONNX graph, layer after layer."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self.weights = weights
        self.nodes: list = []
        self.constants: list = []

    def take(self, name: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """Return the numbers of a layer; an error names one that is missing or of another shape."""
        if name not in self.weights:
            raise RemeasureError(
                f"weights: {name} is missing, this is not an EfficientNet-Lite0; fetch the expected file"
            )
        found = self.weights[name]
        if shape is not None and found.shape != shape:
            layer = name.removesuffix(".weight")
            raise RemeasureError(
                f"weights: {layer} has shape {found.shape}, an EfficientNet-Lite0 has {shape}; "
                "fetch the expected file"
            )
        return found

    def convolution(
        self, source: str, layer: str, norm: str, shape: tuple[int, ...], stride: int = 1, active: bool = True
    ) -> str:
        """Add convolution + folded norm (+ relu6); returns the name of its output.

        A kernel of shape (channels, 1, k, k) is depthwise.
        """
        from onnx import helper, numpy_helper

        kernel = self.take(f"{layer}.weight", shape)
        statistics = (
            self.take(f"{norm}.{part}") for part in ("weight", "bias", "running_mean", "running_var")
        )
        for part, values in zip(("weight", "bias"), fold(kernel, *statistics), strict=True):
            self.constants.append(numpy_helper.from_array(values, f"{layer}.{part}"))
        self.nodes.append(
            helper.make_node(
                "Conv",
                [source, f"{layer}.weight", f"{layer}.bias"],
                [f"{layer}.out"],
                name=layer,
                kernel_shape=shape[2:],
                strides=[stride, stride],
                auto_pad="SAME_UPPER",
                group=shape[0] if shape[1] == 1 and shape[2] > 1 else 1,
            )
        )
        if not active:
            return f"{layer}.out"
        self.nodes.append(
            helper.make_node(
                "Clip", [f"{layer}.out", "zero", "six"], [f"{layer}.active"], name=f"{layer}.relu6"
            )
        )
        return f"{layer}.active"

    def bottleneck(self, source: str, number: int, n_in: int, block: Block, stride: int) -> str:
        """Add one inverted bottleneck; with a shortcut where size and channels stay."""
        from onnx import helper

        name, wide, out = f"_blocks.{number}", n_in * block.expand, source
        if block.expand > 1:
            out = self.convolution(out, f"{name}._expand_conv", f"{name}._bn0", (wide, n_in, 1, 1))
        depthwise = (wide, 1, block.kernel, block.kernel)
        out = self.convolution(out, f"{name}._depthwise_conv", f"{name}._bn1", depthwise, stride)
        project = (block.channels, wide, 1, 1)
        out = self.convolution(out, f"{name}._project_conv", f"{name}._bn2", project, active=False)
        if stride == 1 and n_in == block.channels:
            self.nodes.append(helper.make_node("Add", [out, source], [f"{name}.sum"], name=f"{name}.add"))
            return f"{name}.sum"
        return out


def to_onnx(weights: dict[str, np.ndarray]) -> bytes:
    """Build the network without its classifier.

    Returns:
        ONNX bytes. Input ``image``: (n, 3, height, width), float32, RGB, (value - 127) / 128. Outputs
        ``features``: (n, 1280, height/32, width/32) and ``local``: (n, 112, height/16, width/16).

    Raises:
        RemeasureError: a layer is missing or has another shape.
    """
    from onnx import TensorProto, helper

    graph, out, local = _body(weights)
    for source, name in ((out, "features"), (local, "local")):
        graph.nodes.append(helper.make_node("Identity", [source], [name], name=name))
    return _model(
        graph,
        "efficientnet-lite0",
        [
            helper.make_tensor_value_info(
                name, TensorProto.FLOAT, ["n", n_channels, f"{name}_h", f"{name}_w"]
            )
            for name, n_channels in (("features", HEAD_CHANNELS), ("local", BLOCKS[LOCAL_STAGE].channels))
        ],
    )


def classifier_to_onnx(weights: dict[str, np.ndarray]) -> bytes:
    """Build the network with its classifier: means over the map, then one score per class.

    Returns:
        ONNX bytes. Input as in ``to_onnx``; output ``logits``: (n, 1000), the classes of ImageNet 2012 in
        the order of their WordNet numbers.

    Raises:
        RemeasureError: a layer is missing or has another shape.
    """
    from onnx import TensorProto, helper, numpy_helper

    graph, out, _ = _body(weights)
    for part, shape in (("weight", (N_CLASSES, HEAD_CHANNELS)), ("bias", (N_CLASSES,))):
        graph.constants.append(numpy_helper.from_array(graph.take(f"_fc.{part}", shape), f"_fc.{part}"))
    graph.nodes += [
        helper.make_node("GlobalAveragePool", [out], ["pooled"], name="pooled"),
        helper.make_node("Flatten", ["pooled"], ["means"], name="means"),
        helper.make_node("Gemm", ["means", "_fc.weight", "_fc.bias"], ["logits"], name="logits", transB=1),
    ]
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", N_CLASSES])
    return _model(graph, "efficientnet-lite0-classifier", [logits])


def _body(weights: dict[str, np.ndarray]) -> tuple[_Graph, str, str]:
    """Return the graph up to its last map, and the names of that map and of the local one."""
    from onnx import numpy_helper

    graph = _Graph(weights)
    for name, value in (("zero", 0.0), ("six", 6.0)):
        graph.constants.append(numpy_helper.from_array(np.array(value, dtype=np.float32), name))
    out = graph.convolution("image", "_conv_stem", "_bn0", (STEM_CHANNELS, 3, 3, 3), stride=2)
    channels, number, local = STEM_CHANNELS, 0, ""
    for stage, block in enumerate(BLOCKS):
        for repeat in range(block.repeats):
            out = graph.bottleneck(out, number, channels, block, block.stride if repeat == 0 else 1)
            channels, number = block.channels, number + 1
        local = out if stage == LOCAL_STAGE else local
    return graph, graph.convolution(out, "_conv_head", "_bn1", (HEAD_CHANNELS, channels, 1, 1)), local


def _model(graph: _Graph, name: str, outputs: list) -> bytes:
    import onnx
    from onnx import TensorProto, helper

    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, "height", "width"])
    body = helper.make_graph(graph.nodes, name, [image], outputs, graph.constants)
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", 13)], producer_name="remeasure")
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model.SerializeToString(deterministic=True)
