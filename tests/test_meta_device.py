"""Parts run wherever their inputs are: on the meta device, a tensor made on the CPU inside would raise."""

import pytest
import torch

from lecture_utils import llama
from lecture_utils.parity.parts import ROPE_CONFIGS

META = torch.device("meta")


@pytest.mark.parametrize(
    "build",
    [
        lambda: llama.LayerNorm(8),
        lambda: llama.RMSNorm(8),
        lambda: llama.FeedForward(8, 12),
        lambda: llama.SwiGLU(8, 12),
    ],
    ids=["LayerNorm", "RMSNorm", "FeedForward", "SwiGLU"],
)
def test_layer_runs_where_its_input_is(build):
    with META:
        layer = build()
    y = layer(torch.empty(2, 3, 8, device=META))
    assert y.device == META and y.shape == (2, 3, 8)


@pytest.mark.parametrize(
    "name", ["sigmoid", "tanh", "relu", "leaky_relu", "gelu", "swish", "silu", "silu_grad"]
)
def test_activation_runs_where_its_input_is(name):
    assert getattr(llama, name)(torch.empty(2, 3, device=META)).device == META


@pytest.mark.parametrize("name", ROPE_CONFIGS)
def test_rope_runs_where_its_positions_are(name):
    positions = torch.empty(2, 3, dtype=torch.int64, device=META)
    cos, sin = llama.RotaryEmbedding(ROPE_CONFIGS[name])(positions, torch.bfloat16)
    q = torch.empty(2, 4, 3, ROPE_CONFIGS[name].head_dim, dtype=torch.bfloat16, device=META)
    turned, _ = llama.apply_rope(q, q[:, :2], cos, sin)
    assert turned.device == META and turned.dtype == torch.bfloat16 and turned.shape == q.shape


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("cache", [None, llama.KVCache, llama.PagedKVCache])
def test_a_model_runs_where_its_ids_are(implementation, cache):
    config = llama.LlamaConfig(
        vocab_size=9, hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2
    )
    with META:
        model = llama.Llama(config, implementation)
    kept = cache and cache(config, 2, 8, device=META)
    for S in (4, 1, 2):
        logits = model(torch.empty(2, S, dtype=torch.int64, device=META), cache=kept)
        assert logits.device == META and logits.shape == (2, S, 9)


def test_other_forms_of_rope_run_where_their_inputs_are():
    x = torch.empty(2, 3, 8, device=META)
    positions = torch.empty(3, dtype=torch.int64, device=META)
    frequencies = llama.inv_freq(8, device=META)
    for form in (llama.apply_rope_interleaved, llama.apply_rope_complex):
        assert form(x, positions, frequencies).device == META
    assert llama.rotation_matrix(3, frequencies).device == META
    assert llama.rotate_2d(x[..., :2], 0.5).device == META


def test_rotary_embedding_has_no_state_that_a_cast_could_round():
    rotary = llama.RotaryEmbedding(ROPE_CONFIGS["default"]).to(torch.bfloat16)
    assert not list(rotary.parameters()) and not list(rotary.buffers())
    cos, _ = rotary(torch.tensor([256, 257]))
    assert cos.dtype == torch.float32 and not torch.equal(cos[0], cos[1])
