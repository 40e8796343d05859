"""The proof itself: every part passes it, every mistake fails it, and it says why."""

import copy
import json
from dataclasses import replace

import pytest
import torch
from mistakes import RMS_NORM, ROPE, SWIGLU
from torch import nn

from lecture_utils import llama
from lecture_utils.llama import LlamaConfig
from lecture_utils.parity import ParityTable, assert_matches, formula, reference
from lecture_utils.parity.compare import DTYPES
from lecture_utils.parity.parts import ROPE_CONFIGS, proofs

PROOFS = {f"{proof.lesson} · {proof.name}": proof for proof in proofs()}
TABLES = {}


def table_of(name):
    if name not in TABLES:
        TABLES[name] = PROOFS[name].run()
    return TABLES[name]


@pytest.mark.parametrize("name", PROOFS)
def test_every_part_matches_its_reference(name):
    assert table_of(name).passed


# Sums of many terms: 1e-5.
WITH_PRODUCTS = ("FeedForward", "SwiGLU", "up_proj", "far from 0", "Attention", "DecoderLayer", "Llama")


@pytest.mark.parametrize("name", PROOFS)
def test_fp32_values_on_the_cpu_are_within_the_promised_bound(name):
    row = next(r for r in table_of(name).rows if (r.device, r.dtype) == ("cpu", "float32"))
    assert row.value_error <= (1e-5 if any(word in name for word in WITH_PRODUCTS) else 1e-6)


@pytest.mark.parametrize("name", [n for n in PROOFS if "RMSNorm" in n or n.startswith("06")])
def test_rms_norm_and_rope_have_the_bits_of_hugging_face_in_every_dtype(name):
    assert {r.dtype for r in table_of(name).rows} == {"float32", "bfloat16", "float16"}
    assert all(r.value_error == 0 and not r.gradient_error for r in table_of(name).rows)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, proof in PROOFS.items()
        if proof.options.get("kind") != "matmul" and len(proof.options.get("dtypes", DTYPES)) > 1
    ],
)
def test_elementwise_parts_are_within_one_step_in_16_bits(name):
    rows = [r for r in table_of(name).rows if r.dtype != "float32"]
    assert len(rows) >= 2 and max(r.steps for r in rows) <= 1


class AsModule(nn.Module):
    """A function f(x, *parameters) as a module with these parameter names."""

    def __init__(self, function, theirs):
        super().__init__()
        self.function = function
        self.names = [name for name, _ in theirs.named_parameters()]
        for name, parameter in theirs.named_parameters():
            *path, leaf = name.split(".")
            owner = self
            for part in path:
                if not hasattr(owner, part):
                    owner.add_module(part, nn.Module())
                owner = getattr(owner, part)
            setattr(owner, leaf, copy.deepcopy(parameter))

    def forward(self, x):
        return self.function(x, *(self.get_parameter(name) for name in self.names))


@pytest.mark.parametrize("kind", ["exact", "elementwise"])
@pytest.mark.parametrize("name", RMS_NORM)
def test_rms_norm_mistake_fails(name, kind):
    proof = PROOFS["02 · RMSNorm, eps 1e-06"]
    wrong = AsModule(lambda x, w: RMS_NORM[name](x, w, 1e-6), proof.theirs)
    if (name, kind) == ("weight-before-cast", "elementwise"):
        # Another order of rounding, not another function: at most one step in 16 bits.
        assert max(row.steps or 0 for row in proof.run(wrong, kind=kind).rows) == 1
    else:
        with pytest.raises(AssertionError):
            proof.run(wrong, kind=kind)


@pytest.mark.parametrize("name", SWIGLU)
def test_swiglu_mistake_fails(name):
    proof = PROOFS["04 · SwiGLU"]
    with pytest.raises(AssertionError, match=r"output|gradient"):
        proof.run(AsModule(SWIGLU[name], proof.theirs))


@pytest.mark.parametrize("name", ROPE)
def test_rope_mistake_fails(name):
    config = LlamaConfig(hidden_size=32, num_attention_heads=4)
    positions = torch.tensor([[5, 6, 7, 256, 257, 1000], [3, 4, 5, 0, 1, 2]])
    q, k = torch.randn(2, 6, 6, 8), torch.randn(2, 3, 6, 8)
    with pytest.raises(AssertionError):
        assert_matches(ROPE[name], reference.LlamaRope(config), q, k, positions)


@pytest.mark.parametrize("name", ["linear", "dynamic", "llama3"])
def test_ignored_rope_scaling_fails(name):
    plain = llama.RotaryEmbedding(ROPE_CONFIGS["default"])
    with pytest.raises(AssertionError):
        PROOFS[f"06 · RotaryEmbedding, {name}"].run(lambda x, positions: plain(positions, x.dtype))


@pytest.mark.parametrize("width", [266, 256, 400], ids=["not-rounded", "rounded-down", "4H"])
def test_a_wrong_width_is_a_difference_of_parameters(width):
    right = llama.intermediate_size(100, multiple_of=16)
    config = LlamaConfig(hidden_size=100, intermediate_size=right, num_attention_heads=2)
    theirs = reference.LlamaMLP(reference.llama_config(config))
    assert right == 272 and assert_matches(
        llama.SwiGLU(100, right), theirs, torch.randn(2, 3, 100), kind="matmul", magnitudes=(1.0,)
    )
    with pytest.raises(AssertionError, match=r"gate_proj\.weight is .*, expected \(272, 100\)"):
        assert_matches(llama.SwiGLU(100, width), theirs, torch.randn(2, 3, 100))


def test_unstable_silu_fails_in_fp16():
    def unstable(x):
        return x / (1 + torch.exp(-x))

    minus_twelve = torch.tensor([-12.0]).half()
    assert unstable(minus_twelve) == 0
    torch.testing.assert_close(llama.silu(minus_twelve), torch.tensor([-7.373e-5]).half())
    with pytest.raises(AssertionError):
        PROOFS["05 · silu"].run(unstable, dtypes=[torch.float16])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: x.sigmoid(),
        torch.nn.functional.gelu,
        lambda x: x * (2 * x).sigmoid(),
        lambda x: torch.where(x >= 0, x * torch.exp(-x.abs()).add(1).reciprocal(), x.sigmoid() * x.detach()),
    ],
    ids=["sigmoid", "gelu", "beta-2", "slope-cut"],
)
def test_silu_mistake_fails(wrong):
    with pytest.raises(AssertionError):
        PROOFS["05 · silu"].run(wrong)


def test_slope_that_is_wrong_only_at_zero_fails():
    def with_abs(x):
        small = torch.exp(-x.abs())
        return torch.where(x >= 0, 1 / (1 + small), small / (1 + small))

    with pytest.raises(AssertionError, match=r"gradient of input 0 .* inputs all 0"):
        PROOFS["05 · sigmoid"].run(with_abs, dtypes=[torch.float32])


@pytest.mark.parametrize("change", ["unbiased", "eps-outside", "no-bias"])
def test_layer_norm_mistake_fails(change):
    class Wrong(llama.LayerNorm):
        def forward(self, x):
            centred = x.float() - x.float().mean(-1, keepdim=True)
            variance = x.float().var(-1, keepdim=True, correction=1 if change == "unbiased" else 0)
            eps_in, eps_out = (0, self.eps) if change == "eps-outside" else (self.eps, 0)
            y = centred / ((variance + eps_in).sqrt() + eps_out) * self.weight
            return (y + self.bias * (change != "no-bias")).to(x.dtype)

    with pytest.raises(AssertionError):
        PROOFS["01 · LayerNorm"].run(Wrong(96))


def test_a_bias_too_many_is_a_difference_of_parameters():
    with pytest.raises(AssertionError, match=r"gate_proj\.bias"):
        PROOFS["04 · SwiGLU"].run(llama.SwiGLU(96, 160, bias=True))


def test_the_failure_says_where_and_who_is_off():
    wrong = AsModule(lambda x, w: RMS_NORM["mean-subtracted"](x, w, 1e-6), reference.LlamaRMSNorm(96))
    with pytest.raises(AssertionError) as failure:
        PROOFS["02 · RMSNorm, eps 1e-06"].run(wrong, dtypes=[torch.float32])
    first, table = str(failure.value).split("\n\n")
    assert "output at [" in first and "float64 says" in first and "ours is further off" in first
    assert "DIFFERENT" in table


def test_a_small_mistake_is_reported_at_the_magnitude_that_shows_it():
    wrong = AsModule(lambda x, w: RMS_NORM["eps-outside-root"](x, w, 1e-6), reference.LlamaRMSNorm(96))
    with pytest.raises(AssertionError, match=r"inputs × 0\.001"):
        PROOFS["02 · RMSNorm, eps 1e-06"].run(wrong, kind="elementwise", dtypes=[torch.float32])


def test_missing_gradient_is_a_difference():
    def detached(x):
        return x.detach() * 2 + 0 * x.sum().detach() + torch.zeros(1, requires_grad=True)

    with pytest.raises(AssertionError, match="no gradient flows"):
        assert_matches(detached, lambda x: x * 2, torch.randn(2, 3), dtypes=[torch.float32])


def test_other_shape_dtype_and_number_of_outputs_are_differences():
    x = torch.randn(2, 3)
    for wrong, message in (
        (lambda x: x[:1], "shape"),
        (lambda x: x.double(), "dtype"),
        (lambda x: (x, x), "a tuple of 2, expected one tensor"),
        (lambda x: (x,), "a tuple of 1, expected one tensor"),
        (lambda x: None, "not a tensor"),
    ):
        with pytest.raises(AssertionError, match=message):
            assert_matches(wrong, lambda x: x * 1, x, dtypes=[torch.float32])


def test_a_reference_that_overflows_proves_nothing():
    with pytest.raises(ValueError, match="not finite"):
        assert_matches(lambda x: x * 1e5, lambda x: x * 1e5, torch.randn(4), dtypes=[torch.float16])


def test_nan_is_never_equal():
    with pytest.raises(AssertionError):
        assert_matches(lambda x: x * torch.nan, lambda x: x * 1, torch.randn(4))


def test_arguments_that_prove_nothing_are_named():
    x = torch.randn(2)
    for call, error, words in (
        (
            lambda: assert_matches(torch.sin, torch.sin, x, kind="fuzzy"),
            ValueError,
            "kind must be one of exact",
        ),
        (lambda: assert_matches(torch.sin, torch.sin), ValueError, "at least one input"),
        (lambda: assert_matches(torch.sin, torch.sin, x, dtypes=[]), ValueError, "dtypes must be a list of"),
        (lambda: assert_matches(torch.sin, torch.sin, x, dtypes=torch.float32), ValueError, "dtypes must be"),
        (lambda: assert_matches(torch.sin, torch.sin, x, magnitudes=3.0), ValueError, "magnitudes must be"),
        (lambda: assert_matches(torch.sin, torch.sin, x, magnitudes=()), ValueError, "magnitudes must be"),
        (lambda: assert_matches(torch.nn.SiLU, torch.sin, x), TypeError, "the class SiLU: make an instance"),
        (lambda: assert_matches(None, torch.sin, x), TypeError, "ours must be a module or a function"),
        (lambda: assert_matches(torch.sin, torch.sin, 1.0), TypeError, "input 0 must be a tensor, not float"),
        (lambda: assert_matches(torch.sin, torch.sin, x[:0]), ValueError, "gives no number"),
        (lambda: assert_matches(torch.sin, torch.det, x), ValueError, "the reference raised"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_an_exception_in_ours_is_a_sentence():
    def wrong(x):
        return x.view(7, 7)

    with pytest.raises(AssertionError, match=r"ours raised RuntimeError: shape .* \(on cpu in float32"):
        assert_matches(wrong, lambda x: x * 1, torch.randn(2, 3))


def test_arguments_random_state_and_matmul_precision_are_left_alone():
    ours, theirs, x = llama.RMSNorm(8), reference.LlamaRMSNorm(8), torch.randn(2, 3, 8)
    before = x.clone(), torch.get_rng_state(), torch.get_float32_matmul_precision()
    assert_matches(ours, theirs, x)
    assert torch.equal(x, before[0]) and torch.equal(torch.get_rng_state(), before[1])
    assert torch.get_float32_matmul_precision() == before[2]
    assert (ours.weight == 1).all() and ours.weight.dtype == torch.float32 and ours.weight.grad is None


def test_weights_are_hostile_whatever_the_modules_hold():
    # All weights are 1 here: a part that ignores them would pass if they were used as they are.
    class IgnoresWeight(llama.RMSNorm):
        def forward(self, x):
            return super().forward(x) / self.weight.detach() + 0 * self.weight

    with pytest.raises(AssertionError):
        assert_matches(IgnoresWeight(8), reference.LlamaRMSNorm(8), torch.randn(2, 3, 8))


def test_the_table_says_that_a_missing_gpu_is_not_a_pass():
    table = table_of("02 · RMSNorm, eps 1e-06")
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        assert {row.device for row in table.rows} > {"cpu"}
    else:
        assert "absent, not passed" in str(table) and "absent, not passed" in table._repr_html_()


def test_who_is_off_is_told_apart():
    # PyTorch takes the slope of the sigmoid from a rounded value; ours is nearer to float64.
    row = next(r for r in table_of("05 · sigmoid").rows if (r.device, r.dtype) == ("cpu", "bfloat16"))
    assert row.ours_off < row.theirs_off / 5


def test_small_errors_just_above_the_tolerance_fail():
    x = torch.randn(4, 8)
    for factor, passes in ((1e-6 / 3, True), (1e-5, False)):
        try:
            assert_matches(
                lambda x, f=factor: x + f * x.detach().square().mean().sqrt(),
                lambda x: x * 1,
                x,
                dtypes=[torch.float32],
                magnitudes=(1.0,),
            )
            assert passes
        except AssertionError as error:
            assert not passes, error


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda x: x.view(-1).view(x.shape) * 1, "nothing contiguous"),
        (lambda x: x.squeeze() * 1, "only the first of the batch"),
        (lambda x: x * 1 + 0 * torch.rand(1), "random state"),
    ],
)
def test_cases_that_ordinary_inputs_do_not_show(wrong, words):
    with pytest.raises(AssertionError, match=words):
        assert_matches(wrong, lambda x: x * 1, torch.randn(3, 4), dtypes=[torch.float32])


def test_frozen_and_shared_weights_are_differences():
    theirs = reference.LlamaMLP(reference.llama_config(LlamaConfig(hidden_size=8, num_attention_heads=2)))
    for change, words in (
        (lambda part: part.up_proj.weight.requires_grad_(False), "up_proj.weight is .* frozen"),
        (
            lambda part: setattr(part.up_proj.weight, "data", part.gate_proj.weight.data),
            "in the memory of gate",
        ),
    ):
        ours = llama.SwiGLU(8, theirs.up_proj.out_features)
        change(ours)
        with pytest.raises(AssertionError, match=words):
            assert_matches(ours, theirs, torch.randn(2, 3, 8))


def test_the_command_says_which_part_differs_and_writes_its_rows(monkeypatch, capsys, tmp_path):
    from lecture_utils.parity import __main__ as command
    from lecture_utils.parity import parts

    right = PROOFS["05 · relu"]
    wrong = replace(right, name="wrong relu", ours=lambda x: x * 1)
    file = tmp_path / "rows.json"
    monkeypatch.setattr("sys.argv", ["parity", "--json", str(file)])
    monkeypatch.setattr(parts, "proofs", lambda: [right])
    assert command.main() == 0 and "rows equal" in capsys.readouterr().out
    monkeypatch.setattr(parts, "proofs", lambda: [right, wrong])
    assert command.main() == 1
    out = capsys.readouterr().out
    assert "wrong relu" in out and "1 parts differ" in out
    passed = {row["part"]: row["passed"] for row in json.loads(file.read_text())}
    assert passed == {"05 · relu": True, "05 · wrong relu": False}


def test_a_table_without_rows_is_no_pass():
    assert not ParityTable("nothing", []).passed


def test_formulas_are_computed_in_float64():
    seen = []

    def spy(parameters, x):
        seen.append(x.dtype)
        return formula.silu(parameters, x)

    assert_matches(llama.silu, reference.ACT2FN["silu"], torch.randn(3), formula=spy, magnitudes=(1.0,))
    assert set(seen) == {torch.float64}


class Edited(llama.RMSNorm):
    """RMSNorm with one change to its inputs, weights or memory, named by `change`."""

    def __init__(self, change):
        super().__init__(8)
        self.change, self.kept = change, None

    def forward(self, x):
        if self.change == "writes-into-weight":
            self.weight.data.clamp_(0.8, 1.2)
        if self.change == "ones-for-weight":
            with torch.no_grad():
                self.weight.fill_(1)
        if self.change == "writes-into-input":
            with torch.no_grad():
                x.sub_(x.mean(-1, keepdim=True))
        if self.change == "weight-kept-from-first-call":
            self.kept = self.weight.detach().clone() if self.kept is None else self.kept
            return super().forward(x) / self.weight.detach() * self.kept
        if self.change == "one-output-buffer":
            y = super().forward(x)
            self.kept = torch.empty_like(y).detach() if self.kept is None else self.kept
            return _Through.apply(y, self.kept)
        if self.change == "gradients-switched-off":
            torch.set_grad_enabled(False)
        if self.change == "other-in-eval-mode" and not self.training:
            return super().forward(x) * 1.1
        if self.change == "gradient-cut-in-eval-mode" and not self.training:
            return super().forward(x).detach() + 0 * super().forward(x)
        if self.change == "other-without-gradient" and not x.requires_grad:
            return super().forward(x) * 1.1
        if self.change == "absolute-weight":
            return super().forward(x) * self.weight.sign().detach()
        return super().forward(x)


class _Through(torch.autograd.Function):
    """Gives y in memory that the next call uses again."""

    @staticmethod
    def forward(ctx, y, memory):
        return memory.copy_(y).view_as(memory)

    @staticmethod
    def backward(ctx, grad):
        return grad, None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("writes-into-weight", "writes into its inputs or its weights"),
        ("ones-for-weight", "writes into its inputs or its weights"),
        ("writes-into-input", "writes into its inputs or its weights"),
        ("weight-kept-from-first-call", "output at"),
        ("one-output-buffer", "changes when the part is called again"),
        ("gradients-switched-off", "gradients are switched off"),
        ("other-in-eval-mode", "output in eval mode"),
        ("gradient-cut-in-eval-mode", "gradient of input 0 in eval mode"),
        ("other-without-gradient", "output without gradients"),
        ("absolute-weight", "output at"),
    ],
)
def test_side_effects_and_memories_are_differences(change, words):
    with pytest.raises(AssertionError, match=words):
        assert_matches(Edited(change), reference.LlamaRMSNorm(8), torch.randn(2, 3, 8))
    assert torch.is_grad_enabled()


def test_the_edited_norm_is_right_when_nothing_is_edited():
    assert assert_matches(Edited(None), reference.LlamaRMSNorm(8), torch.randn(2, 3, 8)).passed


def test_positions_written_into_are_a_difference_and_the_callers_stay():
    positions = torch.tensor([[1, 2, 3], [4, 5, 6]])

    def no_rope(q, k, positions):
        positions.zero_()
        return q * 1, k * 1

    inputs = torch.randn(2, 4, 3, 64), torch.randn(2, 2, 3, 64), positions
    with pytest.raises(AssertionError, match="writes into its inputs"):
        assert_matches(no_rope, reference.LlamaRope(ROPE_CONFIGS["default"]), *inputs)
    assert positions.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_missing_gradient_shows_also_when_the_caller_has_switched_gradients_off():
    with torch.no_grad(), pytest.raises(AssertionError, match="gradient"):
        assert_matches(lambda x: x.detach() * 2, lambda x: x * 2, torch.randn(3))


def test_backward_that_writes_into_the_arriving_gradient_is_a_difference():
    class Doubles(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad.mul_(2)

    with pytest.raises(AssertionError, match="backward writes into"):
        assert_matches(Doubles.apply, lambda x: x * 2, torch.randn(3))


def _turning(frequencies, kept=None):
    """A rotary embedding from a function config → frequencies; `kept` holds a cache of its first call."""

    def build(config):
        cache = {}

        def rotary(x, positions):
            key = {"first": 0, "length": positions.shape[-1], None: object()}[kept]
            if key not in cache:
                cache[key] = llama.cos_sin(positions, frequencies(config, positions))
            return tuple(t.to(x.dtype) for t in cache[key])

        return rotary

    return build


class KeepsTheLongest(nn.Module):
    """Dynamic scaling that never shrinks back: right for every text that is longer than those before."""

    def __init__(self, config):
        super().__init__()
        self.config, self.longest = config, 0

    def forward(self, x, positions):
        self.longest = max(self.longest, int(positions.max()))
        longest = torch.cat((positions.flatten(), torch.tensor([self.longest], device=positions.device)))
        cos, sin = llama.cos_sin(positions, llama.rope_frequencies(self.config, longest))
        return cos.to(x.dtype), sin.to(x.dtype)


def _changed(**numbers):
    """Frequencies of a config with some numbers hard-coded."""

    def frequencies(config, positions):
        scaling = config.rope_scaling
        if scaling:
            scaling = {**scaling, **{n: v for n, v in numbers.items() if n in scaling}}
        fields = {n: v for n, v in numbers.items() if n in ("rope_theta", "head_dim")}
        return llama.rope_frequencies(replace(config, **fields, rope_scaling=scaling), positions)

    return frequencies


@pytest.mark.parametrize(
    ("build", "passes"),
    [
        (_turning(llama.rope_frequencies), True),
        (_turning(llama.rope_frequencies, kept="first"), False),
        (_turning(llama.rope_frequencies, kept="length"), False),
        (KeepsTheLongest, False),
        (_turning(_changed(rope_theta=500000.0)), False),
        (_turning(_changed(head_dim=64)), False),
        (_turning(_changed(factor=4.0)), False),
        (_turning(_changed(low_freq_factor=1.0, high_freq_factor=4.0)), False),
        (_turning(_changed(original_max_position_embeddings=8192)), False),
        (_turning(lambda c, p: llama.rope_frequencies(c, p[:, :1] * 0)), False),
        (_turning(lambda c, p: llama.rope_frequencies(c, p.max() * 0 + 131071)), False),
    ],
    ids=[
        "right",
        "kept-from-first-call",
        "kept-by-length",
        "keeps-the-longest",
        "theta",
        "head-dim",
        "factor",
        "turns",
        "original-length",
        "never-dynamic",
        "always-long",
    ],
)
def test_rotary_mistakes_are_caught_by_some_row(build, passes):
    caught = 0
    for name, config in ROPE_CONFIGS.items():
        for text in ("", ", short text"):
            try:
                PROOFS[f"06 · RotaryEmbedding, {name}{text}"].run(build(config), dtypes=[torch.float32])
            except AssertionError:
                caught += 1
    assert (caught == 0) is passes


@pytest.mark.parametrize(
    ("name", "naive"),
    [
        ("sigmoid", lambda x: 1 / (1 + torch.exp(-x))),
        ("silu", lambda x: x / (1 + torch.exp(-x))),
        ("tanh", lambda x: torch.expm1(2 * x) / (torch.expm1(2 * x) + 2)),
    ],
)
def test_a_plain_exp_fails_far_out(name, naive):
    PROOFS[f"05 · {name}"].run(naive, dtypes=[torch.float32])  # nothing shows at ordinary size
    with pytest.raises(AssertionError):
        PROOFS[f"05 · {name}, large inputs"].run(naive, dtypes=[torch.float32])


def test_variance_as_a_difference_of_squares_fails_far_from_zero():
    class Naive(llama.LayerNorm):
        def forward(self, x):
            x, mean = x.float(), x.float().mean(-1, keepdim=True)
            variance = x.square().mean(-1, keepdim=True) - mean.square()
            return (x - mean) * torch.rsqrt(variance + self.eps) * self.weight + self.bias

    with pytest.raises(AssertionError):
        PROOFS["01 · LayerNorm, tokens far from 0"].run(Naive(96))
