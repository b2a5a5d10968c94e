"""The reranker itself: a token that looks at the tokens of two photographs, and a logit of it.

Tokens of a photograph see the matching token and each other (self-attention), then the matching token and
those of the other photograph (cross-attention). No matrix over all tokens is made: each of the blocks that
may see each other is one call, and padding is cut off or masked as a key. What of the first layer depends on
one photograph alone is made once per photograph (``Side``); after the last layer's self-attention only the
matching token goes on.

Source:
    Suma et al., AMES (ECCV 2024), and the published module, with whose logits tests compare: five layers,
    post-norm, no encodings of place. Gallery tokens are rounded to float16 when they have been mapped, query
    tokens are not.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from remeasure.instances import torch_module
from remeasure.instances.ames.weights import Shape, binarises

if TYPE_CHECKING:
    from torch import Tensor


class Side(NamedTuple):
    """What the first layer's self-attention makes of n photographs of one length."""

    x: "Tensor"
    """Their tokens, [n, length, width]."""
    seen: "Tensor"
    """What the matching token sees of each alone, [n, heads, width / heads]."""
    weight: "Tensor"
    """Logarithm of the sum of the exponentials that this is a mean by, [n, heads]."""
    mask: "Tensor | None"
    """True where a token is one, [n, 1, 1, length]; null where all are."""

    def take(self, rows: "Tensor") -> "Side":
        """Return some of the photographs."""
        return Side(*(None if part is None else part[rows] for part in self))


class Ames:
    """A reranker on one device.

    Args:
        tensors: as ``weights.check`` returns them.
        shape: sizes.
        device: of torch.
        half: whether tokens and weights are float16; norms and softmax stay in float32.
        trainable: whether gradients are wanted.
        threads: that score batches side by side (``scoring``); one batch is computed by one.
    """

    def __init__(
        self,
        tensors: dict[str, np.ndarray],
        shape: Shape,
        device: str = "cpu",
        half: bool = False,
        trainable: bool = False,
        threads: int = 1,
    ) -> None:
        torch = torch_module.load()
        self._torch, self.shape, self.device, self.threads = torch, shape, device, threads
        self.dtype = torch.float16 if half else torch.float32
        self.tensors = {
            name: torch.tensor(value, dtype=self.dtype, device=device, requires_grad=trainable)
            for name, value in tensors.items()
        }
        self._trainable = trainable
        self.binarises = binarises(tensors)

    # -- tokens --------------------------------------------------------------------------------------------

    def remap(self, descriptors: "Tensor", gallery: bool) -> "Tensor":
        """Map local descriptors to tokens; of a model of 32 bits.

        Args:
            descriptors: [..., dim], float32; rows need not be normalised. Of a reranker of bits whose ``dim``
                is its width they are bits already, -1 and 1.
            gallery: whether they are of the gallery: those tokens are rounded to float16 and back.

        Returns:
            [..., width], float32.
        """
        torch, at = self._torch, self.tensors
        x = torch.nn.functional.normalize(descriptors, dim=-1)
        first = int(self.binarises)
        if self.binarises:
            x = torch.sign(descriptors if self.shape.dim == self.shape.width else x @ at["remap_local.0.W"])
        x = torch.nn.functional.linear(x, at[f"remap_local.{first}.weight"], at[f"remap_local.{first}.bias"])
        x = self._norm(x, f"remap_local.{first + 1}")
        return x.half().float() if gallery and not self.binarises and not self._trainable else x

    def side(self, tokens: "Tensor", n_valid: "Tensor | None") -> Side:
        """Return what the first layer makes of photographs alone.

        Args:
            tokens: [n, length, width].
            n_valid: how many are tokens and no padding, [n], at least 1; null where all are.
        """
        torch = self._torch
        x, mask = tokens.to(self.dtype), None
        if n_valid is not None:
            mask = (torch.arange(x.shape[1], device=x.device) < n_valid[:, None])[:, None, None]
        token = self.tensors["mtc_token"].expand(len(x), -1)
        query, key, value = self._projected(0, "self_attn", token, x)
        seen, weight = self._look(query[:, :, 0], key[:, :, 1:], value[:, :, 1:], mask)
        x = self._norm(x + self._block(0, "self_attn", query, key, value, mask), "decoder.layers.0.norm1")
        return Side(x, seen, weight, mask)

    # -- pairs ---------------------------------------------------------------------------------------------

    def logits(self, one: Side, other: Side) -> "Tensor":
        """Return logits of n pairs, [n] float32: rows of ``one`` (queries) with those of ``other``."""
        sides, masks = [one.x, other.x], [one.mask, other.mask]
        token = self.tensors["mtc_token"].expand(len(one.x), -1)
        last = self.shape.layers - 1
        for layer in range(self.shape.layers):
            if layer == 0:
                token = self._first_token(token, one, other)
            else:
                token, sides = self._self_attention(layer, token, sides, masks)
            if layer < last:
                token, sides = self._cross_attention(layer, token, sides, masks)
                sides = [self._feed_forward(layer, x) for x in sides]
            else:
                token = self._last_look(layer, token, sides, masks)
            token = self._feed_forward(layer, token)
        # As a sum over each row: a product with one column depends on the place in the batch in its last bit.
        weight, bias = self.tensors["classifier.weight"], self.tensors["classifier.bias"]
        return (token.float() * weight[0].float()).sum(-1) + bias.float()

    def _first_token(self, token: "Tensor", one: Side, other: Side) -> "Tensor":
        _, key, value = self._heads(0, "self_attn", token[:, None])
        query, _, _ = self._heads(0, "self_attn", token[:, None])
        own = self._look(query[:, :, 0], key, value, None)
        seen = self._merge([own, (one.seen, one.weight), (other.seen, other.weight)])
        return self._added(0, "self_attn", token, seen, "norm1")

    def _self_attention(self, layer: int, token, sides, masks):
        made, parts = [], []
        for x, mask in zip(sides, masks, strict=True):
            query, key, value = self._projected(layer, "self_attn", token, x)
            if not parts:
                parts.append(self._look(query[:, :, 0], key[:, :, :1], value[:, :, :1], None))
            parts.append(self._look(query[:, :, 0], key[:, :, 1:], value[:, :, 1:], mask))
            attended = self._block(layer, "self_attn", query, key, value, mask)
            made.append(self._norm(x + attended, f"decoder.layers.{layer}.norm1"))
        return self._added(layer, "self_attn", token, self._merge(parts), "norm1"), made

    def _cross_attention(self, layer: int, token, sides, masks):
        both = [self._projected(layer, "cross_attn", token, x) for x in sides]
        query, key, value = both[0]
        parts = [self._look(query[:, :, 0], key[:, :, :1], value[:, :, :1], None)]
        made = []
        for here, there in ((0, 1), (1, 0)):
            (_, key, value), mask = both[there], masks[there]
            parts.append(self._look(query[:, :, 0], key[:, :, 1:], value[:, :, 1:], mask))
            attended = self._block(layer, "cross_attn", both[here][0], key, value, mask)
            made.append(self._norm(sides[here] + attended, f"decoder.layers.{layer}.norm2"))
        return self._added(layer, "cross_attn", token, self._merge(parts), "norm2"), made

    def _last_look(self, layer: int, token, sides, masks):
        """The last cross-attention, of the matching token alone.

        Keys and values of the other tokens are not made: a score is (query · key weights) · token, the
        constant of the keys is the same for all and drops out, and the mean of tokens is mapped to a value
        once.
        """
        torch, width, heads = self._torch, self.shape.width, self.shape.heads
        name = f"decoder.layers.{layer}.cross_attn"
        weight, bias = self.tensors[f"{name}.in_proj_weight"], self.tensors[f"{name}.in_proj_bias"]
        query = torch.nn.functional.linear(token, weight[:width], bias[:width]).view(len(token), heads, -1)
        by_head = weight.view(3, heads, width // heads, width)
        query = torch.einsum("nhe,hew->nhw", query, by_head[1])
        parts = []
        for x, mask in zip([token[:, None], *sides], [None, *masks], strict=True):
            everything = x[:, None].expand(-1, heads, -1, -1)
            parts.append(self._look(query, everything, everything, mask))
        seen = torch.einsum("nhw,hew->nhe", self._merge(parts).to(self.dtype), by_head[2])
        seen = seen + bias[2 * width :].view(heads, -1)
        return self._added(layer, "cross_attn", token, seen, "norm2")

    # -- parts ---------------------------------------------------------------------------------------------

    def _heads(self, layer: int, block: str, x: "Tensor"):
        """Return queries, keys and values of tokens, each [n, heads, length, width / heads]."""
        name = f"decoder.layers.{layer}.{block}"
        weight, bias = self.tensors[f"{name}.in_proj_weight"], self.tensors[f"{name}.in_proj_bias"]
        made = self._torch.nn.functional.linear(x, weight, bias)
        return made.view(*x.shape[:2], 3, self.shape.heads, -1).permute(2, 0, 3, 1, 4).unbind()

    def _projected(self, layer: int, block: str, token: "Tensor", x: "Tensor"):
        """Return ``_heads`` of the matching token (at 0) and the tokens of one photograph."""
        return self._heads(layer, block, self._torch.cat([token[:, None], x], 1))

    def _block(self, layer: int, block: str, query, key, value, mask) -> "Tensor":
        """Let tokens of a photograph look at the matching token and others; return [n, length, width]."""
        torch = self._torch
        if mask is not None:
            mask = torch.nn.functional.pad(mask, (1, 0), value=True)
        seen = torch.nn.functional.scaled_dot_product_attention(query[:, :, 1:], key, value, attn_mask=mask)
        seen = seen.transpose(1, 2).flatten(2)
        name = f"decoder.layers.{layer}.{block}.out_proj"
        return torch.nn.functional.linear(seen, self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"])

    def _look(self, query, key, value, mask):
        """Let one token look at others: mean of their values, and the logarithm of the sum of exponentials.

        Args:
            query: [n, heads, e].
            key: [n, heads, length, e]; the scale is that of one head's width, whatever e is.
            value: [n, heads, length, f].
            mask: [n, 1, 1, length] or null.
        """
        torch = self._torch
        scores = (key @ query[..., None])[..., 0].float() * (self.shape.width // self.shape.heads) ** -0.5
        if mask is not None:
            scores = scores.masked_fill(~mask[:, :, 0], -torch.inf)
        weight = torch.logsumexp(scores, -1)
        shares = torch.exp(scores - weight[..., None]).to(self.dtype)
        return (shares[:, :, None] @ value)[:, :, 0].float(), weight

    def _merge(self, parts) -> "Tensor":
        """Return the mean over several sets of tokens from the means over each, [n, heads, f]."""
        torch = self._torch
        # Along the last axis: along others the last bit depends on the place in the batch.
        shares = torch.softmax(torch.stack([weight for _, weight in parts], -1), -1).unbind(-1)
        return sum(share[..., None] * seen for share, (seen, _) in zip(shares, parts, strict=True))

    def _added(self, layer: int, block: str, token: "Tensor", seen: "Tensor", norm: str) -> "Tensor":
        name = f"decoder.layers.{layer}.{block}.out_proj"
        made = self._torch.nn.functional.linear(
            seen.to(self.dtype).flatten(1), self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]
        )
        return self._norm(token + made, f"decoder.layers.{layer}.{norm}")

    def _norm(self, x: "Tensor", name: str) -> "Tensor":
        at = self.tensors
        return self._torch.nn.functional.layer_norm(x, x.shape[-1:], at[f"{name}.weight"], at[f"{name}.bias"])

    def _feed_forward(self, layer: int, x: "Tensor") -> "Tensor":
        torch, at, name = self._torch, self.tensors, f"decoder.layers.{layer}."
        linear = torch.nn.functional.linear
        hidden = torch.relu_(linear(x, at[f"{name}linear1.weight"], at[f"{name}linear1.bias"]))
        return self._norm(
            x + linear(hidden, at[f"{name}linear2.weight"], at[f"{name}linear2.bias"]), f"{name}norm3"
        )
