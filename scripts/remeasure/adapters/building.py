"""From a base and an adapter to what is written: weights, files beside them, counts of what was done."""

import logging
from pathlib import Path
from typing import Any

from remeasure.adapters import checkpoint, llava, llava_files, peft, qwen
from remeasure.adapters.folder import Folder
from remeasure.adapters.merging import Place, Weights, n_differing
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes, write_text
from remeasure.yaml_files import Settings

log = logging.getLogger("remeasure.adapters")
_WHOLE = "non_lora_trainables.bin"


class MergeSettings(Settings, kw_only=True):
    """Settings of ``merge_adapter``: what decides the bytes of the folder beside the files."""

    family: str
    system: str | None = None
    trained_projector: bool = True


class Model:
    """A base with an adapter laid over it; nothing is computed before its weights are asked for.

    Args:
        settings: what decides beside the files.
        base: folder of the base.
        adapter: folder of the adapter; null: the base alone.
        vision: folder of CLIP, for LLaVA.

    Raises:
        RemeasureError: files that are missing, damaged or do not belong together.
    """

    def __init__(
        self, settings: MergeSettings, base: Path, adapter: Path | None, vision: Path | None
    ) -> None:
        self.settings, self.base, self.adapter, self.vision = settings, base, adapter, vision
        self.read: list[Path] = []
        """Files that the model is made from."""
        self.counts = {"lora_pairs": 0, "whole_tensors": 0}
        self.facts: dict[str, Any] = {}
        self.weights, self.names = self._open()

    def _open(self) -> tuple[Weights, dict[str, str]]:
        """Return the weights, and the name of each in the folder, in the order of its files."""
        raise NotImplementedError

    def unchanged(self) -> list[Path]:
        """Return the weight files that may be taken as they are; none where something is changed."""
        return []

    def write_files(self, folder: Folder) -> None:
        """Write what lies beside the weights."""
        raise NotImplementedError

    def _lay_over(self, weights: Weights, canonical) -> None:
        """Lay a PEFT adapter's changes over the weights."""
        if self.adapter is None:
            return
        config, opened = peft.open_folder(self.adapter)
        specs = {name: place.spec for name, place in weights.places.items()}
        found = peft.changes(config, opened, specs, canonical, str(self.adapter))
        weights.merge(opened, found.pairs)
        weights.replace(opened, found.replaced)
        self.facts |= {
            "ranks": sorted({pair.rank for pair in found.pairs.values()}),
            "scales": sorted({pair.scale for pair in found.pairs.values()}),
            "target_modules": sorted({pair.module.rpartition(".")[2] for pair in found.pairs.values()}),
            "adapter_says_base": config.get("base_model_name_or_path"),
        }
        self.counts["lora_pairs"] = len(found.pairs)
        self.counts["whole_tensors"] += len(found.replaced)
        self.read += [self.adapter / peft.CONFIG, *opened.paths]
        said = ", ".join(f"{name} {self.facts[name]}" for name in ("ranks", "scales", "target_modules"))
        log.info("%s: %d LoRA pairs, %d whole tensors, %s", self.adapter, *self.counts.values(), said)


class Qwen(Model):
    """Qwen2-VL or Qwen2.5-VL; templates, tokenizer and processors are the base's own."""

    def _open(self) -> tuple[Weights, dict[str, str]]:
        config = qwen.check(self.base, self.settings.family)
        self._opened = checkpoint.of_folder(self.base)
        places = qwen.places(self._opened, str(self.base))
        weights = Weights(places, {name: place.spec.kind for name, place in places.items()})
        self._files = [self.base / name for name in qwen.FILES if (self.base / name).is_file()]
        self.read += [*self._opened.paths, *self._files]
        self._lay_over(weights, qwen.canonical)
        tied = config.get("tie_word_embeddings") or llava.HEAD not in places
        if tied and not weights.changed().isdisjoint((llava.EMBEDDING, llava.HEAD)):
            raise RemeasureError(
                f"{self.adapter}: changes the embedding or the head, which are one in this base; that cannot "
                "be merged here"
            )
        generation = self.base / "generation_config.json"
        self.facts |= {
            "chat_template_sha256": qwen.template_sha256(self.base),
            "image_processor": checkpoint.read_config(self.base / "preprocessor_config.json"),
            "generation": checkpoint.read_config(generation) if generation.is_file() else None,
        }
        return weights, {name: place.name for name, place in places.items()}

    def unchanged(self) -> list[Path]:
        """As in the parent; only safetensors files, with their index."""
        paths = self._opened.paths
        if self.weights.changed() or any(path.suffix != ".safetensors" for path in paths):
            return []
        index = self.base / "model.safetensors.index.json"
        return [*paths, *([index] if index.is_file() else [])]

    def write_files(self, folder: Folder) -> None:
        """Take all as they are."""
        for path in self._files:
            folder.link(path)


class Llava(Model):
    """LLaVA-1.5, from the original's files to the converted layout."""

    def _open(self) -> tuple[Weights, dict[str, str]]:
        if self.vision is None:
            raise RemeasureError("--vision: is missing; LLaVA-1.5 needs the folder of CLIP")
        own = (
            [self.adapter / "config.json"]
            if self.adapter and (self.adapter / "config.json").is_file()
            else []
        )
        configs = [self.base / "config.json", *own]
        read = [checkpoint.read_config(path) for path in configs]
        self._config = llava_files.settled(read[0], read[1] if own else None, str(configs[-1].parent))
        clip = self.vision / "config.json"
        self._clip = llava_files.vision_config(checkpoint.read_config(clip), str(self.vision))
        opened, seen = checkpoint.of_folder(self.base), checkpoint.of_folder(self.vision)
        places = llava.places(opened, seen, self._config, self._clip, str(self.base))
        kind = places[llava.EMBEDDING].spec.kind
        weights = Weights(places, dict.fromkeys(places, kind))
        self.read += [*configs, *opened.paths, clip, *seen.paths]
        self._lay_over(weights, str)
        if self.adapter:
            self._take_whole(weights, places, kind, self.adapter)
        self._n_tokens = weights.places[llava.EMBEDDING].spec.shape[0]
        for name in (llava.EMBEDDING, llava.HEAD):
            weights.grow(name, llava.n_rows(self._n_tokens))
        self._template = llava_files.template(self.settings.system)
        self._converted = llava_files.config(
            self._config, self._clip, llava.n_rows(self._n_tokens), self._n_tokens, kind
        )
        self._processors = llava_files.processors(self._converted)
        self.facts |= {
            "chat_template_sha256": sha256_bytes(self._template.encode()),
            "image_processor": self._processors["preprocessor_config.json"],
            "image_encoder_from": "base" if places[llava.VISION_PROBE].file is opened else "vision",
        }
        return weights, {name: llava.converted(name) for name in places}

    def _take_whole(self, weights: Weights, places: dict[str, Place], kind: str, adapter: Path) -> None:
        """Put what was trained without LoRA in the place of the base's."""
        path = adapter / _WHOLE
        if not path.is_file():
            raise RemeasureError(
                f"{path} is missing: an adapter of LLaVA keeps its trained projector there; put it beside "
                f"{peft.CONFIG}"
            )
        trained = checkpoint.Checkpoint([path])
        specs = {name: place.spec for name, place in places.items()}
        found = llava.trained_whole(trained, specs, self._config["vocab_size"], str(adapter))
        twice = sorted(found.keys() & weights.changed())
        if twice:
            raise RemeasureError(
                f"{adapter}: {twice[0]} was trained whole and with LoRA; it is not one adapter"
            )
        projector = [name for name in found if name.startswith(llava.PROJECTOR)]
        weights.replace(trained, found)
        n = sum(n_differing(places[name], Place(trained, found[name]), kind) > 0 for name in projector)
        if (n > 0) != self.settings.trained_projector:
            raise RemeasureError(
                f"{path}: {n} of {len(projector)} tensors of the projector differ from the base's; expected "
                f"{'at least one' if self.settings.trained_projector else 'none'} (`trained_projector`)"
            )
        self.counts["whole_tensors"] += len(found)
        self.counts |= {"projector_tensors": len(projector), "projector_tensors_that_differ": n}
        self.read.append(path)
        log.info(
            "%s: %d tensors, %d of the projector, %d of these differ", path, len(found), len(projector), n
        )

    def write_files(self, folder: Folder) -> None:
        """Write configuration, processors, template and tokenizer."""
        config = self._config
        ends = {"bos_token_id": config.get("bos_token_id", 1), "eos_token_id": config.get("eos_token_id", 2)}
        files = {"config.json": self._converted} | self._processors
        files["generation_config.json"] = ends | {"pad_token_id": self._n_tokens + 1}
        for name, value in files.items():
            llava_files.write(folder.path / name, value)
        write_text(folder.path / "chat_template.jinja", self._template)
        self.read += llava_files.write_tokenizer(self.base, folder.path, self._n_tokens)


MODELS: dict[str, type[Model]] = {"llava15": Llava, "qwen2-vl": Qwen, "qwen2-5-vl": Qwen}
