"""Models of the package `transformers` with random weights, as small as they get. The package is needed for these
alone.

python -m graph_oracle.pytorch capture examples/hugging_face.py:gpt2 -o graphs
python -m graph_oracle.pytorch capture examples/hugging_face.py:llama_sharded --ranks 2 -o graphs
"""

import os
import sys

import torch
from torch.nn import functional as F

sys.path.insert(0, os.path.dirname(__file__))
from sharding import shard, world_mesh  # noqa: E402

WORDS, TOKENS = 32, 8


def step(model):
    tokens = torch.randint(0, WORDS, (2, TOKENS))
    model.train()

    @torch.compile(fullgraph=True)
    def loss(tokens):
        found = model(tokens, use_cache=False).logits
        return F.cross_entropy(found.flatten(0, 1).float(), tokens.flatten())

    loss(tokens).backward()


def gpt2():
    """With dropout, learned positions and tied embeddings."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=WORDS, n_positions=16, n_embd=16, n_layer=2, n_head=2, use_cache=False)
    step(GPT2LMHeadModel(config))


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=WORDS,
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=16,
            use_cache=False,
        )
    )


def llama_sharded():
    """Sharded over all ranks."""
    step(shard(llama(), world_mesh()))


def bert():
    """Bidirectional, with layer norms and a pooled head that is not trained."""
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
    )
    model = BertForMaskedLM(config)
    tokens = torch.randint(0, WORDS, (2, TOKENS))

    @torch.compile(fullgraph=True)
    def loss(tokens):
        return F.cross_entropy(model(tokens).logits.flatten(0, 1).float(), tokens.flatten())

    loss(tokens).backward()
