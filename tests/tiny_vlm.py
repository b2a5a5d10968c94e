"""Build a tiny vision-language model with random weights, for a real vLLM; run by the Python that has vLLM.

It knows the printable ASCII characters, one token each, so that token counts can be worked out by hand. Its
chat template ends a prompt with ``<think></think>`` where thinking is switched off, as Qwen's does.
"""

import json
import string
import sys
from pathlib import Path

SPECIAL = ["<unk>", "<pad>", "<end>", "<vision>", "</vision>", "<image>", "<video>", "<think>", "</think>"]
# Heads of 64: vLLM's attention for CPUs takes no smaller ones.
TEXT = {
    "hidden_size": 128,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 2048,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [8, 12, 12]},
    "tie_word_embeddings": False,
}
VISION = {"depth": 2, "embed_dim": 64, "num_heads": 1, "mlp_ratio": 2, "patch_size": 14, "hidden_size": 128}
TEMPLATE = """{%- for message in messages %}{{ message.role }}:
{%- if message.content is string %}{{ message.content }}{% else %}
{%- for part in message.content %}
{%- if part.type in ('image', 'image_url') %}<vision><image></vision>{% else %}{{ part.text }}{% endif %}
{%- endfor %}{% endif %}<end>{% endfor %}
{%- if add_generation_prompt %}assistant:
{%- if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}{% endif %}"""


def make_tokenizer():
    """Return a tokenizer with one token per character."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = string.printable[:95] + "\n"
    vocabulary = {token: number for number, token in enumerate([*SPECIAL, *letters])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        pad_token="<pad>",
        eos_token="<end>",
        additional_special_tokens=SPECIAL[3:],
        chat_template=TEMPLATE,
        image_token="<image>",
        video_token="<video>",
        vision_bos_token="<vision>",
        vision_eos_token="</vision>",
        clean_up_tokenization_spaces=False,
    )


def build(folder: Path) -> None:
    """Write model, tokenizer and processor settings."""
    import torch
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration

    tokenizer = make_tokenizer()
    ids = dict(zip(SPECIAL, tokenizer.convert_tokens_to_ids(SPECIAL), strict=True))
    config = Qwen2VLConfig(
        text_config=TEXT | {"vocab_size": len(tokenizer), "eos_token_id": ids["<end>"], "bos_token_id": None},
        vision_config=VISION,
        image_token_id=ids["<image>"],
        video_token_id=ids["<video>"],
        vision_start_token_id=ids["<vision>"],
        vision_end_token_id=ids["</vision>"],
        tie_word_embeddings=False,
    )
    torch.manual_seed(7)
    model = Qwen2VLForConditionalGeneration(config).to(torch.bfloat16)
    # Weights as small as training starts with make all tokens alike; with these it prefers some.
    with torch.no_grad():
        model.lm_head.weight.normal_(0, 0.25)
        model.lm_head.weight[: len(SPECIAL)] = 0
    model.generation_config.eos_token_id = ids["<end>"]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    pixels = {"min_pixels": 28 * 28, "max_pixels": 28 * 28 * 256}
    processor = {"image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen2VLProcessor"}
    sizes = {"patch_size": 14, "temporal_patch_size": 2, "merge_size": 2}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor | sizes | pixels))


if __name__ == "__main__":
    build(Path(sys.argv[1]))
