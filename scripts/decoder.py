"""A decoder of a given shape with random weights: what a step of a language model computes.

Llama's layers: RMS norm, rotary embedding, grouped-query attention over a plain KV cache, gated
feed-forward; then the head on one token a sequence, and the next token. PyTorch alone.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder, named as in Hugging Face's config.json."""

    name: str
    num_hidden_layers: int
    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int

    @property
    def parameters(self) -> int:
        """Weights, embedding and head included."""
        attention = (
            self.hidden_size
            * self.head_dim
            * (2 * self.num_attention_heads + 2 * self.num_key_value_heads)
        )
        feed_forward = 3 * self.hidden_size * self.intermediate_size
        layers = self.num_hidden_layers * (attention + feed_forward)
        return layers + 2 * self.vocab_size * self.hidden_size

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of keys and values of one token, all layers, two bytes a number."""
        return 4 * self.num_hidden_layers * self.num_key_value_heads * self.head_dim


SHAPES = {
    "llama-3.1-8b": Shape("meta-llama/Llama-3.1-8B", 32, 4096, 14336, 32, 8, 128, 128256),
    "qwen3-8b": Shape("Qwen/Qwen3-8B", 36, 4096, 12288, 32, 8, 128, 151936),
    "llama-3.2-1b": Shape("meta-llama/Llama-3.2-1B", 16, 2048, 8192, 32, 8, 64, 128256),
    "tiny": Shape("tiny, for trying out", 2, 64, 128, 4, 2, 16, 512),
}


class Decoder:
    """Random weights and a KV cache of `kv_tokens` tokens on one device, in bfloat16."""

    def __init__(self, shape: Shape, kv_tokens: int, device: torch.device) -> None:
        self.shape = shape
        self.device = device
        self.kv_tokens = kv_tokens
        heads, kv_heads, size = shape.num_attention_heads, shape.num_key_value_heads, shape.head_dim
        self.embedding = self._weights(shape.vocab_size, shape.hidden_size)
        self.head = self._weights(shape.vocab_size, shape.hidden_size)
        self.norm = torch.ones(shape.hidden_size, device=device, dtype=torch.bfloat16)
        self.layers = [
            (
                self._weights((heads + 2 * kv_heads) * size, shape.hidden_size),
                self._weights(shape.hidden_size, heads * size),
                self._weights(2 * shape.intermediate_size, shape.hidden_size),
                self._weights(shape.hidden_size, shape.intermediate_size),
            )
            for _ in range(shape.num_hidden_layers)
        ]
        # One cache a layer, as in a server: layers that shared one would find it in the L2 cache.
        self.cache = torch.zeros(
            (shape.num_hidden_layers, 2, kv_heads, kv_tokens, size),
            device=device,
            dtype=torch.bfloat16,
        )

    def step(self, prefill_tokens: int, prefix: int, sequences: int, context: int) -> Tensor:
        """Compute one step and return the next tokens.

        `prefill_tokens` of one prompt after `prefix` computed ones, and one token each of
        `sequences` sequences that have `context` tokens, this one included.
        """
        shape = self.shape
        tokens = torch.arange(prefill_tokens + sequences, device=self.device) % shape.vocab_size
        hidden = self.embedding[tokens]
        for number, (qkv, output, gate_up, down) in enumerate(self.layers):
            normal = functional.rms_norm(hidden, (shape.hidden_size,), self.norm)
            attended = self._attention(normal @ qkv.T, number, prefill_tokens, prefix, context)
            hidden = hidden + attended @ output.T
            normal = functional.rms_norm(hidden, (shape.hidden_size,), self.norm)
            gate, up = (normal @ gate_up.T).chunk(2, dim=-1)
            hidden = hidden + (functional.silu(gate) * up) @ down.T
        last = hidden[max(prefill_tokens - 1, 0) :]  # one token a sequence goes through the head
        return (functional.rms_norm(last, (shape.hidden_size,), self.norm) @ self.head.T).argmax(-1)

    def _attention(
        self, qkv: Tensor, layer: int, prefill_tokens: int, prefix: int, context: int
    ) -> Tensor:
        shape = self.shape
        kv_heads, size = shape.num_key_value_heads, shape.head_dim
        group = shape.num_attention_heads // kv_heads
        query, key, value = qkv.view(qkv.shape[0], -1, size).split(
            [shape.num_attention_heads, kv_heads, kv_heads], dim=1
        )
        query, key = rotate(query), rotate(key)
        keys, values = self.cache[layer]
        parts = []
        if prefill_tokens:
            length = prefix + prefill_tokens
            keys[:, prefix:length] = key[:prefill_tokens].transpose(0, 1)
            values[:, prefix:length] = value[:prefill_tokens].transpose(0, 1)
            parts.append(
                causal(query[:prefill_tokens].transpose(0, 1), keys, values, length, group)
            )
        sequences = qkv.shape[0] - prefill_tokens
        if sequences:
            own_keys = of_sequences(keys, sequences, context)
            own_values = of_sequences(values, sequences, context)
            own_keys[:, :, -1] = key[prefill_tokens:]
            own_values[:, :, -1] = value[prefill_tokens:]
            # The query heads of a group stand as if they were tokens: no key is read twice.
            grouped = query[prefill_tokens:].view(sequences, kv_heads, group, size)
            attended = functional.scaled_dot_product_attention(grouped, own_keys, own_values)
            parts.append(attended.reshape(sequences, -1))
        return torch.cat(parts)

    def _weights(self, rows: int, columns: int) -> Tensor:
        weights = torch.empty((rows, columns), device=self.device, dtype=torch.bfloat16)
        return weights.normal_(std=columns**-0.5)


def rotate(heads: Tensor) -> Tensor:
    """Do the work of a rotary embedding (the angles do not matter here)."""
    first, second = heads.chunk(2, dim=-1)
    return torch.cat((first * 0.8 - second * 0.6, second * 0.8 + first * 0.6), dim=-1)


def of_sequences(cache: Tensor, sequences: int, context: int) -> Tensor:
    """Return a cache of (kv heads, tokens, size) as (sequences, kv heads, context, size)."""
    own = cache[:, : sequences * context]
    return own.view(own.shape[0], sequences, context, own.shape[-1]).transpose(0, 1)


def causal(query: Tensor, keys: Tensor, values: Tensor, length: int, group: int) -> Tensor:
    """Attend the last `query` tokens of a prompt of `length` to what stands before each."""
    keys = keys[:, :length].repeat_interleave(group, dim=0)
    values = values[:, :length].repeat_interleave(group, dim=0)
    tokens = query.shape[1]
    if tokens == length:
        attended = functional.scaled_dot_product_attention(query, keys, values, is_causal=True)
    else:
        from torch.nn.attention.bias import causal_lower_right  # noqa: PLC0415 - slow to import

        attended = functional.scaled_dot_product_attention(
            query[None], keys[None], values[None], attn_mask=causal_lower_right(tokens, length)
        )[0]
    return attended.transpose(0, 1).reshape(tokens, -1)
