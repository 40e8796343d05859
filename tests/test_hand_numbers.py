"""Numbers that a reader can check by hand, right and wrong: the ones that the lessons quote."""

import math

import pytest
import torch
from mistakes import RMS_NORM, ROPE, SWIGLU

from lecture_utils import llama


def rms_norm(x, eps=1e-6, weight=None):
    norm = llama.RMSNorm(x.shape[-1], eps)
    if weight is not None:
        norm.weight.data = weight
    return norm(x).detach()


def close(actual, expected, atol=5e-5):
    torch.testing.assert_close(actual.detach().float(), torch.tensor(expected), atol=atol, rtol=0)


SMALL = torch.tensor([1e-3, -1e-3])


def test_rms_norm_of_small_vectors():
    close(rms_norm(torch.tensor([3.0, 4.0])), [0.8485, 1.1314])
    close(rms_norm(SMALL), [0.7071, -0.7071])
    close(rms_norm(SMALL, eps=1e-5), [0.3015, -0.3015])
    assert torch.equal(rms_norm(torch.zeros(4)), torch.zeros(4))
    tokens = rms_norm(torch.tensor([[[1.0, 2, 1, 2], [2, 4, 2, 4]]]))
    torch.testing.assert_close(tokens[0, 0], tokens[0, 1], atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("mean-subtracted", [3.0, 4.0], [-1.0, 1.0]),
        ("eps-outside-root", [1e-3, -1e-3], [0.9990, -0.9990]),
        ("eps-1e-5", [1e-3, -1e-3], [0.3015, -0.3015]),
        ("eps-missing", [1e-3, -1e-3], [1.0, -1.0]),
        ("eps-1e-8", [1e-3, -1e-3], [0.9950, -0.9950]),
        ("over-sequence-too", [[1.0, 2], [3, 4]], [[0.3651, 0.7303], [1.0954, 1.4606]]),
        ("over-sequence-only", [[1.0, 2], [3, 4]], [[0.4472, 0.6325], [1.3416, 1.2649]]),
        ("one-plus-weight", [3.0, 4.0], [2 * 0.84853, 2 * 1.13137]),
    ],
)
def test_rms_norm_mistake_gives(name, x, expected):
    x = torch.tensor(x)
    close(RMS_NORM[name](x, torch.ones(2), 1e-6), expected)


def test_rms_norm_without_upcast_loses_large_and_small_numbers():
    ones = torch.ones(4).half()
    assert (RMS_NORM["no-upcast"](300 * ones, ones, 1e-6) == 0).all()
    assert not torch.isclose(RMS_NORM["no-upcast"](1e-4 * ones, ones, 0.0), ones).any()
    close(rms_norm(300 * ones, weight=ones), [1.0] * 4)


def test_rms_norm_without_eps_is_nan_at_zero():
    assert RMS_NORM["eps-missing"](torch.zeros(2), torch.ones(2), 1e-6).isnan().all()


def test_weight_before_the_cast_moves_a_quarter_of_bf16_values():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 512, generator=generator).bfloat16()
    weight = (1 + 0.3 * torch.randn(512, generator=generator)).bfloat16()
    late = rms_norm(x, weight=weight)
    early = RMS_NORM["weight-before-cast"](x, weight, 1e-6)
    assert 0.2 < (late != early).float().mean() < 0.3


def test_swiglu_of_one_number_and_its_mistakes():
    x, one = torch.tensor([1.0]), torch.ones(1, 1)
    part = llama.SwiGLU(1, 1)
    part.gate_proj.weight.data, part.up_proj.weight.data = 2 * one, -one
    part.down_proj.weight.data = one
    close(part(x), [-1.7616])
    for name, expected in {
        "gate-and-up-exchanged": -0.5379,
        "sigmoid-for-silu": -0.8808,
        "gelu-for-silu": -1.9545,
        "relu-for-silu": -2.0,
        "branches-added": 0.7616,
        "no-activation": -2.0,
    }.items():
        close(SWIGLU[name](x, 2 * one, -one, one), [expected])


@pytest.mark.parametrize(
    ("hidden_size", "multiple_of", "multiplier", "expected"),
    [
        (4096, 256, 1.0, 11008),
        (5120, 256, 1.0, 13824),
        (4096, 1024, 1.3, 14336),
        (8192, 4096, 1.3, 28672),
        (16384, 4096, 1.2, 53248),
    ],
)
def test_widths_of_published_models(hidden_size, multiple_of, multiplier, expected):
    assert llama.intermediate_size(hidden_size, multiple_of, multiplier) == expected
    assert expected in {config.intermediate_size for config in llama.PRESETS.values()}


def test_silu_minimum_slope_and_limits():
    x = torch.tensor(-1.27846, dtype=torch.float64)
    assert llama.silu(x).item() == pytest.approx(-0.27846, abs=1e-5)
    assert llama.silu_grad(x).item() == pytest.approx(0, abs=1e-5)
    assert llama.silu_grad(torch.tensor(0.0)) == 0.5
    x = torch.tensor([-2.0, 3.0])
    assert torch.equal(llama.swish(x, beta=0.0), x / 2)
    close(llama.swish(x, beta=1e4), [0.0, 3.0])


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "gelu", "swish", "silu"])
def test_activation_gradients_agree_with_finite_differences(name):
    x = torch.linspace(-4, 4, 33, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(getattr(llama, name), x)


def test_silu_grad_is_the_slope_that_autograd_finds():
    x = torch.linspace(-30, 30, 201, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(llama.silu(x).sum(), x)
    torch.testing.assert_close(llama.silu_grad(x), slope)


def rope(x, positions, base=10000.0):
    cos, sin = llama.cos_sin(torch.tensor(positions), llama.inv_freq(x.shape[-1], base))
    return llama.apply_rope(x, x, cos, sin)[0]


VECTOR = torch.tensor([[[[1.0, 2, 3, 4]]]])  # [B=1, N=1, S=1, d=4]


def test_rope_at_position_1_in_both_layouts():
    close(rope(VECTOR, [1]), [[[[-1.9841, 1.9599, 2.4624, 4.0198]]]])
    interleaved = [[[[-1.1426, 1.9221, 2.9599, 4.0298]]]]
    frequencies = llama.inv_freq(4)
    for form in (llama.apply_rope_interleaved, llama.apply_rope_complex):
        close(form(VECTOR, torch.tensor([1]), frequencies), interleaved)
    close(llama.rotation_matrix(1, frequencies) @ VECTOR[0, 0, 0], interleaved[0][0][0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("interleaved", [-1.1426, 1.9221, 2.9599, 4.0298]),
        ("mixed-layouts", [-1.9841, -2.2853, 3.0098, 4.0198]),
        ("other-way", [3.0647, 2.0399, 0.7794, 3.9798]),
    ],
)
def test_rope_mistake_gives(name, expected):
    turned = ROPE[name](VECTOR, VECTOR, torch.tensor([[1]]))[0].flatten()
    close(turned, expected)
    norm = 5.863 if name == "mixed-layouts" else 5.477
    assert turned.norm().item() == pytest.approx(norm, abs=1e-3)


def test_rope_keeps_norms_and_leaves_position_0_alone():
    x = torch.randn(2, 3, 4, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(rope(x, [0, 0, 0, 0]), x)
    torch.testing.assert_close(rope(x, [0, 5, 77, 9000]).norm(dim=-1), x.norm(dim=-1))


def test_rope_scores_depend_on_the_distance_only():
    q, k = torch.randn(2, 1, 1, 1, 16, generator=torch.Generator().manual_seed(0))
    scores = [(rope(q, [m]) * rope(k, [m - 3])).sum() for m in (3, 50, 1000)]
    torch.testing.assert_close(torch.stack(scores), scores[0].expand(3), atol=1e-3, rtol=0)


def test_base_sets_the_second_frequency():
    assert llama.inv_freq(8)[1].item() == pytest.approx(0.1)
    assert llama.inv_freq(8, 5e5)[1].item() == pytest.approx(0.0376, abs=5e-5)


def test_bf16_angles_merge_positions_and_are_far_off():
    positions = torch.tensor([256, 257])
    assert positions.bfloat16()[0] == positions.bfloat16()[1]
    for base in (1e4, 5e5):
        exact = (1000 * llama.inv_freq(128, base)).cos()
        rounded = (torch.tensor(1000).bfloat16() * llama.inv_freq(128, base).bfloat16()).float().cos()
        assert (exact - rounded).abs().max().item() == pytest.approx(1.27, abs=0.005)
    cos, _ = llama.cos_sin(positions, llama.inv_freq(128))
    assert not torch.equal(cos[0], cos[1])


def test_llama3_scaling_keeps_blends_and_slows():
    frequencies = llama.inv_freq(64, 5e5)
    ratio = llama.llama3_scaling(frequencies, 32.0, 1.0, 4.0, 8192) / frequencies
    assert (ratio[:15] == 1).all() and (ratio[18:] == 1 / 32).all()
    assert ((ratio[15:18] < 1) & (ratio[15:18] > 1 / 32)).all()


def test_layouts_give_equal_scores_once_the_rows_are_permuted():
    generator = torch.Generator().manual_seed(0)
    n_heads, d, hidden_size, tokens = 3, 8, 10, 5
    w_q, w_k = torch.randn(2, n_heads * d, hidden_size, generator=generator, dtype=torch.float64)
    x = torch.randn(tokens, hidden_size, generator=generator, dtype=torch.float64)
    positions, frequencies = torch.arange(tokens) + 7, llama.inv_freq(d)

    def heads(weight):
        return (x @ weight.T).unflatten(-1, (n_heads, d)).transpose(0, 1)[None]  # [B=1, N, S, d]

    q, k = (llama.apply_rope_interleaved(heads(w), positions, frequencies) for w in (w_q, w_k))
    cos, sin = (t.double() for t in llama.cos_sin(positions, frequencies))
    halves = [heads(llama.interleaved_to_half(w, n_heads)) for w in (w_q, w_k)]
    q_half, k_half = llama.apply_rope(*halves, cos, sin)
    torch.testing.assert_close(q_half @ k_half.mT, q @ k.mT, atol=1e-4, rtol=1e-4)
    back = llama.half_to_interleaved(llama.interleaved_to_half(w_q, n_heads), n_heads)
    assert torch.equal(back, w_q)


def test_rms_after_the_norm_is_what_the_formula_says():
    x = torch.tensor([[0.01, 0.02, -0.03, 0.0]])
    mean_square = x.square().mean()
    expected = math.sqrt(mean_square / (mean_square + 1e-6))
    assert rms_norm(x).square().mean().sqrt().item() == pytest.approx(expected, rel=1e-6)


def test_the_interleaved_forms_agree_in_any_dtype_and_memory_layout():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 3, 8, 5, generator=generator).transpose(-1, -2)  # [2, 3, S=5, d=8], not contiguous
    positions, frequencies = torch.tensor([0, 3, 9, 500, 7]), llama.inv_freq(8)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        pairs, numbers = (
            form(x.to(dtype), positions, frequencies)
            for form in (llama.apply_rope_interleaved, llama.apply_rope_complex)
        )
        assert pairs.dtype == numbers.dtype == dtype
        torch.testing.assert_close(pairs, numbers)
        torch.testing.assert_close(
            pairs.float().norm(dim=-1), x.to(dtype).float().norm(dim=-1), rtol=1e-2, atol=0
        )


def test_dynamic_scaling_looks_at_this_text_only():
    config = llama.LlamaConfig(
        hidden_size=64,
        num_attention_heads=4,
        max_position_embeddings=64,
        rope_scaling={"rope_type": "dynamic", "factor": 2.0},
    )
    rotary, short = llama.RotaryEmbedding(config), torch.arange(100)
    before = rotary(short)[0]
    rotary(torch.arange(500))
    assert torch.equal(rotary(short)[0], before)
