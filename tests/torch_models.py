"""Real torch, transformers and peft as a second opinion on merged folders; run by the Python that has them.

``build FOLDER`` writes tiny models and adapters as these write them; ``check FOLDER`` compares what was
merged from them with what these make of the same files, and prints a JSON object.
"""

import json
import sys
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import (
    AutoProcessor,
    AutoTokenizer,
    CLIPConfig,
    CLIPModel,
    CLIPVisionModel,
    LlamaConfig,
    LlamaForCausalLM,
    LlavaForConditionalGeneration,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
)

TEXT = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
}
VISION = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "patch_size": 14,
    "image_size": 56,
    "projection_dim": 16,
}
LLAVA = {
    "mm_projector_type": "mlp2x_gelu",
    "mm_hidden_size": 32,
    "mm_vision_select_layer": -2,
    "mm_vision_select_feature": "patch",
    "image_aspect_ratio": "pad",
    "model_type": "llava",
}
WORDS = "the quick brown fox jumps over a lazy dog while two cats sit in a box and look at a picture"
QUESTION = "Look at the picture."
MODULES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def randomise(model, std: float) -> None:
    """Give every weight noticeable random numbers: fresh adapters are zero."""
    with torch.no_grad():
        for _, weight in model.named_parameters():
            weight.add_(torch.randn(weight.shape, dtype=torch.float32).to(weight.dtype) * std)


def train_tokenizer(folder: Path) -> int:
    """Write a sentencepiece model as LLaMA's; return its number of pieces."""
    import sentencepiece

    lines = folder / "lines.txt"
    words = WORDS.split()
    lines.write_text("\n".join(" ".join(words[k:] + words[:k]) for k in range(len(words))))
    sentencepiece.SentencePieceTrainer.train(
        input=str(lines),
        model_prefix=str(folder / "tokenizer"),
        vocab_size=330,
        model_type="bpe",
        byte_fallback=True,
        hard_vocab_limit=False,
        unk_id=0,
        bos_id=1,
        eos_id=2,
        pad_id=-1,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
    )
    lines.unlink()
    (folder / "tokenizer.vocab").unlink()
    names = {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "tokenizer_class": "LlamaTokenizer",
    }
    more = {"add_bos_token": True, "add_eos_token": False, "legacy": False, "model_max_length": 2048}
    (folder / "tokenizer_config.json").write_text(json.dumps(names | more))
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model")).vocab_size()


def projector() -> torch.nn.Sequential:
    """Return the two layers between image encoder and language model."""
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 64))


def build_llava(folder: Path) -> None:
    """Write original files of LLaVA-1.5, of CLIP, and an adapter with a trained projector."""
    base, adapter = folder / "llava", folder / "llava-adapter"
    for place in (base, adapter):
        place.mkdir()
    config = LlamaConfig(**TEXT, vocab_size=train_tokenizer(base))
    model = LlamaForCausalLM(config).half()
    randomise(model, 0.1)
    state = dict(model.state_dict())
    first = projector().half()
    state |= {f"model.mm_projector.{name}": value for name, value in first.state_dict().items()}
    names = sorted(state)
    places = {}
    for number, part in enumerate((names[:9], names[9:]), start=1):
        file = f"pytorch_model-{number:05d}-of-00002.bin"
        torch.save({name: state[name] for name in part}, base / file)
        places |= dict.fromkeys(part, file)
    (base / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": places}))
    plain = config.to_dict() | LLAVA
    (base / "config.json").write_text(json.dumps(plain))
    settings = LoraConfig(r=8, lora_alpha=16, target_modules=MODULES, task_type="CAUSAL_LM", use_rslora=True)
    settings.rank_pattern, settings.alpha_pattern = {"o_proj": 4}, {"layers.1.self_attn.v_proj": 3}
    adapted = get_peft_model(model.float(), settings)
    randomise(adapted, 0.05)
    adapted.save_pretrained(adapter)
    (adapter / "config.json").write_text(json.dumps(plain))
    second = projector()
    whole = {f"base_model.model.model.mm_projector.{n}": p for n, p in second.named_parameters()}
    torch.save(whole, adapter / "non_lora_trainables.bin")  # parameters, not plain tensors
    clip = CLIPModel(
        CLIPConfig(vision_config=VISION, projection_dim=16, text_config={"num_hidden_layers": 1})
    )
    (folder / "clip").mkdir()
    torch.save(clip.state_dict(), folder / "clip" / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    (folder / "clip" / "config.json").write_text(
        json.dumps({"vision_config": VISION | {"hidden_act": "quick_gelu"}})
    )


def qwens() -> dict:
    """Return class and tiny configuration of both."""
    text = TEXT | {"vocab_size": 100, "rope_scaling": {"type": "mrope", "mrope_section": [2, 2, 4]}}
    old = {"depth": 2, "embed_dim": 32, "num_heads": 2, "mlp_ratio": 2, "patch_size": 14, "hidden_size": 64}
    new = {"depth": 2, "hidden_size": 32, "num_heads": 2, "intermediate_size": 48, "out_hidden_size": 64}
    return {
        "qwen2-vl": (Qwen2VLForConditionalGeneration, Qwen2VLConfig(text_config=text, vision_config=old)),
        "qwen2-5-vl": (
            Qwen2_5_VLForConditionalGeneration,
            Qwen2_5_VLConfig(text_config=text, vision_config=new),
        ),
    }


def build_qwen(folder: Path, family: str) -> None:
    """Write a base as transformers does, and adapters of language model and image encoder as peft does."""
    kind, config = qwens()[family]
    model = kind(config).to(torch.bfloat16)
    randomise(model, 0.1)
    base = folder / family
    model.save_pretrained(base, max_shard_size="200KB")
    for name, value in (
        ("preprocessor_config.json", {"image_processor_type": "Qwen2VLImageProcessor"}),
        ("tokenizer_config.json", {"chat_template": "{{ messages }}"}),
    ):
        (base / name).write_text(json.dumps(value))
    settings = LoraConfig(r=8, lora_alpha=16, target_modules=[*MODULES, "qkv"], modules_to_save=["lm_head"])
    adapted = get_peft_model(model, settings)
    randomise(adapted, 0.05)
    adapted.save_pretrained(folder / f"{family}-adapter")


def furthest(found: dict, wanted: dict) -> float:
    """Return the largest difference of two models' weights, in units of the last place of 16-bit numbers."""
    assert set(found) == set(wanted), set(found) ^ set(wanted)
    worst = 0.0
    for name, value in wanted.items():
        a, b = found[name].float(), value.float()
        unit = torch.finfo(found[name].dtype).eps * torch.maximum(b.abs(), torch.tensor(1e-2))
        worst = max(worst, float(((a - b).abs() / unit).max()))
    return worst


def check_qwen(folder: Path, family: str) -> dict:
    """Compare a merged Qwen with peft's own merging."""
    kind, _ = qwens()[family]
    found, info = kind.from_pretrained(
        folder / f"{family}-merged", dtype=torch.bfloat16, output_loading_info=True
    )
    wanted = kind.from_pretrained(folder / family, dtype=torch.bfloat16)
    plain = dict(wanted.state_dict())
    before = {name: value.clone() for name, value in plain.items()}
    wanted = PeftModel.from_pretrained(wanted, folder / f"{family}-adapter").merge_and_unload()
    changed = sum(not torch.equal(v, before[n]) for n, v in wanted.state_dict().items() if n in before)
    return {
        "missing": sorted(info["missing_keys"]),
        "unexpected": sorted(info["unexpected_keys"]),
        "furthest": furthest(found.state_dict(), wanted.state_dict()),
        "changed": changed,
        "n_tensors": len(before),
    }


def rounded(model):
    """Return a model in float32 whose weights are 16-bit numbers, but not what it computes itself."""
    model = model.float()
    for weight in model.parameters():
        weight.data = weight.data.half().float()
    return model


def original_llava(folder: Path) -> tuple:
    """Return language model, image encoder and projector of the original files with peft's merging."""
    state = {}
    for path in sorted((folder / "llava").glob("*.bin")):
        state |= torch.load(path, weights_only=True)
    config = LlamaConfig.from_dict(json.loads((folder / "llava" / "config.json").read_text()))
    model = LlamaForCausalLM(config)
    model.load_state_dict({n: v for n, v in state.items() if "mm_projector" not in n})
    model = PeftModel.from_pretrained(model.float(), folder / "llava-adapter").merge_and_unload()
    whole = torch.load(folder / "llava-adapter" / "non_lora_trainables.bin", weights_only=True)
    middle = projector()
    middle.load_state_dict({n.rpartition("mm_projector.")[2]: v for n, v in whole.items()})
    clip = CLIPModel(
        CLIPConfig(vision_config=VISION, projection_dim=16, text_config={"num_hidden_layers": 1})
    )
    clip.load_state_dict(torch.load(folder / "clip" / "pytorch_model.bin", weights_only=True))
    seen = CLIPVisionModel(clip.config.vision_config)
    seen.vision_model.load_state_dict(clip.vision_model.state_dict())
    return rounded(model), rounded(seen), rounded(middle)


def check_llava(folder: Path) -> dict:
    """Compare a converted LLaVA with the formula of the original on the same image and question."""
    from PIL import Image

    out = folder / "llava-merged"
    found, info = LlavaForConditionalGeneration.from_pretrained(out, output_loading_info=True)
    dtype = str(found.dtype)
    model, seen, middle = original_llava(folder)
    processor = AutoProcessor.from_pretrained(out)
    image = Image.new("RGB", (168, 56), (0, 0, 255))
    image.paste((255, 0, 0), (0, 20, 8, 36))
    part = [{"type": "image", "image": image}, {"type": "text", "text": QUESTION}]
    words = {"add_generation_prompt": True, "tokenize": True, "return_dict": True, "return_tensors": "pt"}
    given = processor.apply_chat_template([{"role": "user", "content": part}], **words)
    with torch.no_grad():
        logits = found(**given).logits[0]
        hidden = seen(given["pixel_values"], output_hidden_states=True).hidden_states[-2][:, 1:]
        ids, n = given["input_ids"][0], model.config.vocab_size
        embeds = model.get_input_embeddings()(ids.clamp(max=n - 1))
        embeds[ids == n] = middle(hidden)[0]
        wanted = model(inputs_embeds=embeds[None]).logits[0]
    slow = AutoTokenizer.from_pretrained(folder / "llava", use_fast=False)
    pieces = [slow("USER: ").input_ids, slow(f"\n{QUESTION} ASSISTANT:").input_ids[1:]]
    merged = {
        n.removeprefix("model.language_model."): v
        for n, v in found.state_dict().items()
        if "model.language" in n
    }
    state = {n.removeprefix("model."): v for n, v in model.state_dict().items() if n.startswith("model.")}
    merged["embed_tokens.weight"] = merged["embed_tokens.weight"][:n]
    middle_colour = given["pixel_values"][0, :, 28].T
    red = torch.tensor([1.0, 0.0, 0.0])
    mean, std = (
        torch.tensor(x) for x in (processor.image_processor.image_mean, processor.image_processor.image_std)
    )
    return {
        "missing": sorted(info["missing_keys"]),
        "unexpected": sorted(info["unexpected_keys"]),
        "dtype": dtype,
        "furthest": furthest({k: v.half() for k, v in merged.items()}, state),
        "logits": float((logits[:, :n] - wanted).abs().max()),
        "size_of_logits": float(wanted.abs().max()),
        "new_rows_win": int((logits.argmax(-1) >= n).sum()),
        "ids": [int(k) for k in ids if k != n],
        "ids_of_the_original": [*pieces[0], *pieces[1]],
        "n_image_tokens": int((ids == n).sum()),
        "prompt": processor.apply_chat_template(
            [{"role": "user", "content": part}], add_generation_prompt=True
        ),
        "red_at_the_border": bool(
            ((middle_colour * std + mean)[:4] - red).abs().max(dim=1).values.min() < 0.1
        ),
        "top_row": [round(float(x) * 255) for x in given["pixel_values"][0, :, 0, 0] * std + mean],
        "shape": list(given["pixel_values"].shape),
    }


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    place = Path(sys.argv[2])
    if sys.argv[1] == "build":
        build_llava(place)
        for each in qwens():
            build_qwen(place, each)
    else:
        print(
            json.dumps({"llava15": check_llava(place)} | {each: check_qwen(place, each) for each in qwens()})
        )
