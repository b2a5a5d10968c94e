"""An encoder of images and texts as a backbone: the last token of a chat that shows the photograph.

What the released package says is read from it and never retyped: the two instructions, and a chat template
where it brings one. Before anything is described, three photographs must come out as its own ``embed_image``
gives them.
"""

import ast
import json
import subprocess
import sys
import tempfile
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from remeasure.errors import RemeasureError
from remeasure.instances import backbones, torches
from remeasure.instances.decode import Decoded, decode
from remeasure.instances.describing import unit

LIMIT = 1e-6
"""How far a number of ours may be from the released package's. Source: landmark card, section 1.8."""
_MAX_SOURCE_BYTES = 1 << 22
_RELEASED = Path(__file__).parent / "released.py"


def _constants(package: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of every constant of the modules of a package; nothing is imported."""
    for path in sorted(package.rglob("*.py")):
        if path.is_file() and path.stat().st_size <= _MAX_SOURCE_BYTES:
            try:
                body = ast.parse(path.read_text(encoding="utf-8")).body
            except (SyntaxError, ValueError, RecursionError):
                continue
            for line in body:
                targets = line.targets if isinstance(line, ast.Assign) else []
                targets = [line.target] if isinstance(line, ast.AnnAssign) else targets
                value = getattr(line, "value", None)
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield from ((t.id, value.value) for t in targets if isinstance(t, ast.Name))


def read_instructions(package: Path) -> dict[str, str]:
    """Return the instructions for a document and for a query that a released package has.

    Args:
        package: folder of its modules.

    Raises:
        RemeasureError: it has no two constants with INSTRUCTION in their names of which one is the query's.
    """
    found = {name: text for name, text in _constants(package) if "INSTRUCT" in name.upper()}
    queries = {text for name, text in found.items() if "QUERY" in name.upper()}
    documents = {text for name, text in found.items() if "QUERY" not in name.upper()}
    if len(queries) != 1 or len(documents) != 1:
        raise RemeasureError(
            f"{package}: has the instructions {', '.join(sorted(found)) or 'none'}; expected one "
            "constant for queries (QUERY…INSTRUCTION) and one for documents in the modules of the released "
            "package; give its folder"
        )
    return {"query": queries.pop(), "document": documents.pop()}


def read_template(package: Path) -> str | None:
    """Return the chat template that a package brings (``*.jinja``); null where the model's own is used.

    Raises:
        RemeasureError: it brings several.
    """
    found = sorted(package.rglob("*.jinja"))
    if len(found) > 1:
        raise RemeasureError(f"{package}: has {len(found)} chat templates, expected one; take the others out")
    return found[0].read_text(encoding="utf-8") if found else None


def last_tokens(torch: Any, hidden: Any, mask: Any) -> Any:
    """Return the state of the last token of every text, whichever side is padded.

    Args:
        torch: the module.
        hidden: shape (n, length, dim).
        mask: shape (n, length), 1 for a token.

    Returns:
        Shape (n, dim), float32.
    """
    places = torch.arange(mask.shape[1], device=mask.device)
    last = torch.where(mask.bool(), places, -1).amax(dim=1)
    return hidden[torch.arange(len(hidden), device=hidden.device), last].float()


class FusionEmbedding:
    """See ``describing.Describer``. Photographs have the size that the processor gives them; no scales."""

    block_rows = 64

    def __init__(
        self, told: backbones.Told, model: Path, package: Path, threads: int, instruction: str
    ) -> None:
        torches.check_folder(model)
        self._torch = torches.begin(threads)
        import transformers

        self._told, self.batch = told, told.batch
        self._folder, self._package = model, package
        if told.scales != (1.0,):
            raise RemeasureError(
                f"backbone {told.name}: scales are {list(told.scales)}, {told.backend} has one: [1.0]; set it"
            )
        words = read_instructions(package)
        self._device = torches.device_of()
        dtype = torches.type_on(self._device, told.precision)
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(str(model), local_files_only=True)
            self._images = transformers.AutoImageProcessor.from_pretrained(str(model), local_files_only=True)
        except (OSError, ValueError, ImportError, KeyError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise RemeasureError(
                f"{model}: no tokenizer and image processor ({reason[:200]}); give the model's whole folder"
            ) from None
        self._model = torches.load_model("AutoModel", model, dtype, self._device)
        template = read_template(package)
        self._prompts = {name: self._prompt(text, template) for name, text in words.items()}
        self._instruction = instruction
        self.columns = {backbones.CLS: backbones.column(told)}

    def _prompt(self, instruction: str, template: str | None) -> str:
        """Return the text around a photograph."""
        chat = [
            {"role": "system", "content": [{"type": "text", "text": instruction}]},
            {"role": "user", "content": [{"type": "image"}]},
        ]
        text = self._tokenizer.apply_chat_template(
            chat, chat_template=template, tokenize=False, add_generation_prompt=True
        )
        image = self._tokenizer.convert_ids_to_tokens(self._model.config.image_token_id)
        if text.count(image) != 1:
            raise RemeasureError(
                f"{self._package}: the chat template shows the photograph {text.count(image)} times, "
                "expected once; give the released package"
            )
        return text

    def decode(self, data: bytes) -> Decoded:
        """Return the pixels of a photograph."""
        return decode(data)

    def prepare(self, pixels: np.ndarray) -> list[tuple[Hashable, Any]]:
        """Return the picture as it is: the processor scales it. Those of one size have as many tokens."""
        return [(pixels.shape[:2], np.ascontiguousarray(pixels))]

    def run(self, kind: Hashable, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return the last token of every chat, float32."""
        return self._vectors(inputs, self._prompts[self._instruction])

    def _vectors(self, pictures: Sequence[np.ndarray], prompt: str) -> list[np.ndarray]:
        from PIL import Image

        torch, images = self._torch, self._images
        seen = images(images=[Image.fromarray(p) for p in pictures], return_tensors="pt")
        image_id = self._model.config.image_token_id
        image = self._tokenizer.convert_ids_to_tokens(image_id)
        lengths = (seen["image_grid_thw"].prod(dim=1) // images.merge_size**2).tolist()
        texts = [prompt.replace(image, image * n) for n in lengths]
        words = self._tokenizer(texts, padding=True, return_tensors="pt", add_special_tokens=False)
        feed = {
            "input_ids": words["input_ids"],
            "attention_mask": words["attention_mask"],
            "mm_token_type_ids": (words["input_ids"] == image_id).int(),
            **seen,
        }
        with torch.inference_mode():
            feed = {name: value.to(self._device) for name, value in feed.items()}
            hidden = self._model(**feed).last_hidden_state
            found = last_tokens(torch, hidden, feed["attention_mask"]).cpu().numpy()
        if found.shape[1] != self._told.dim:
            raise RemeasureError(
                f"backbone {self._told.name}: dim is {self._told.dim}, {self._folder} has {found.shape[1]}; "
                "correct it"
            )
        return list(found)

    def finish(self, outputs: Sequence[Any]) -> dict[str, Any]:
        """Return the vector, of length 1; it is not cut, so that read-outs of fewer numbers need no model."""
        return {backbones.CLS: unit(np.stack(outputs))}

    def check_released(self, pictures: Sequence[np.ndarray]) -> float:
        """Compare with the released package's ``embed_image``, which runs in a process of its own.

        Args:
            pictures: some photographs, each of shape (height, width, 3).

        Returns:
            The largest difference of a number, vectors of length 1.

        Raises:
            RemeasureError: it is above ``LIMIT``, or the package cannot be run.
        """
        prompt = self._prompts["document"]
        ours = unit(np.stack([self._vectors([picture], prompt)[0] for picture in pictures]))
        with tempfile.TemporaryDirectory() as folder:
            here = Path(folder)
            np.savez(here / "pictures.npz", *pictures)
            words = [sys.executable, str(_RELEASED), str(self._package), str(self._folder)]
            done = subprocess.run(
                [*words, str(here / "pictures.npz"), str(here / "out.json"), self._told.precision],
                stdin=subprocess.DEVNULL,
                capture_output=True,
            )
            if done.returncode or not (here / "out.json").is_file():
                said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no word"]
                raise RemeasureError(
                    f"{self._package}: embed_image cannot be run ({said[-1][:200]}); install what it needs"
                )
            theirs = np.array(json.loads((here / "out.json").read_text()), dtype=np.float64)
        found = float(np.abs(ours - unit(theirs)).max()) if ours.shape == theirs.shape else float("inf")
        if not found <= LIMIT:
            raise RemeasureError(
                f"backbone {self._told.name}: differs from embed_image of {self._package} by "
                f"{found:.3g} on {len(pictures)} photographs, at most {LIMIT:g} is allowed; give model and "
                "package of one revision"
            )
        return found
