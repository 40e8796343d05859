"""Checkers: right forms pass, mistakes are named, and nothing that a student writes can hurt."""

import contextlib
import functools
import json
import random
import re
import time

import numpy
import pytest
import torch
import torch.nn.functional as F
from check_zoo import visit

from lecture_utils import check, llama
from lecture_utils.check import EXERCISES, exercise, record, run
from lecture_utils.check.draw import Draw
from lecture_utils.check.exercise import Answer
from lecture_utils.check.judge import Case
from lecture_utils.check.properties import failing

CONTRACT = """
standardize(x) layer_norm(x, weight, bias, eps)
rms_norm(x, weight, eps) rms_norm_grad(x, weight, eps, grad_output)
up_project(x, weight) collapse(up_weight, down_weight)
feed_forward(x, up_weight, up_bias, down_weight, down_bias)
swiglu(x, gate_weight, up_weight, down_weight) intermediate_size(hidden_size, multiple_of, multiplier)
silu(x) silu_grad(x)
rotate_2d(x, angle) inv_freq(head_dim, base) cos_sin(positions, inv_freq)
rotate_half(x) apply_rope(q, k, cos, sin) interleaved_to_half(weight, n_heads)
causal_mask(q_len, kv_len, dtype) repeat_kv(x, n_rep) attention(q, k, v, mask)
kv_cache_bytes(n_layers, n_kv_heads, head_dim, batch, seq_len, bytes_per_value)
decode(model, input_ids, n_new)
decoder_layer(x, attention, mlp, norm_1, norm_2)
next_token_probabilities(logits, temperature, top_k, top_p)
"""
AT_LEAST = {"rms_norm": 12, "swiglu": 10, "intermediate_size": 8, "apply_rope": 14, "causal_mask": 9}
AT_LEAST |= {"attention": 14, "decode": 10, "decoder_layer": 10, "next_token_probabilities": 12}
each_exercise = pytest.mark.parametrize("name", EXERCISES)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    """The record of progress is written where the notebook runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(record.PLACE, raising=False)
    monkeypatch.setattr(record, "_memory", {})


def right(x, weight, eps):
    wide = x.float()
    return weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype)


def without_root(x, weight, eps):
    wide = x.float()
    return weight * (wide / (wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype)


# The catalogue.


def test_there_is_a_checker_for_every_signature_of_the_contract():
    for name, arguments in re.findall(r"(\w+)\((.*?)\)", CONTRACT):
        assert EXERCISES[name].arguments == tuple(arguments.split(", "))
        assert getattr(check, name) is EXERCISES[name]


@pytest.mark.parametrize("name", re.findall(r"(\w+)\(", CONTRACT))
def test_catalogues_are_as_large_as_promised(name):
    assert len([m for m in EXERCISES[name].mistakes if not m.accepted]) >= AT_LEAST.get(name, 6)


@each_exercise
def test_every_right_form_passes_and_every_mistake_is_named_as_itself(name):
    for seed in (0, 1):
        count, surprises = visit(EXERCISES[name], seed)
        assert not surprises, surprises[0]
        assert count["accepted"] == count["forms"] and count["named"] == count["mistakes"] > 0


@each_exercise
def test_hints_are_a_question_then_a_pointer_and_keep_the_line_for_the_third(name):
    it = EXERCISES[name]
    source = "" if isinstance(it, Answer) else it.solution().text
    returned = re.findall(r"return (.+)", source)
    for hints in (it._hints, *(m.hints for m in it.mistakes if not m.accepted)):
        assert len(hints) == len(set(hints)) == 3
        assert hints[0].endswith("?"), hints[0]
        assert not any(code in hint for hint in hints[:2] for code in returned), hints


@each_exercise
def test_solution_shows_code_that_the_checker_accepts(name):
    it = EXERCISES[name]
    if isinstance(it, Answer):
        assert it(*it._right_answers.values()).passed
        return
    text = it.solution().text
    assert text.startswith(f"def {name}(") and "@" not in text.splitlines()[0]
    assert it(it.solution_function).passed


@each_exercise
def test_a_check_takes_less_than_two_seconds_also_when_it_names_a_mistake(name):
    it = EXERCISES[name]
    if isinstance(it, Answer):
        return
    start = time.process_time()  # of this process alone: the machine may be busy
    it(it.solution_function, seed=991)
    it(list(it.mistakes)[-1].functions[0], seed=992)
    assert time.process_time() - start < 2 * 2


def as_layer(layer, names):
    """A layer of the package as a function of its input and its weights."""

    def function(x, *weights):
        return torch.func.functional_call(layer(x, *weights), dict(zip(names, weights, strict=True)), (x,))

    return function


def rms_norm_by_autograd(x, weight, eps, grad_output):
    x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
    return torch.autograd.grad(right(x, weight, eps), (x, weight), grad_output)


def layer_of(x, attention, mlp, norm_1, norm_2):
    layer = llama.DecoderLayer(llama.LlamaConfig(4, 2, 2, 1, 1))
    for name, part in (("input_layernorm", norm_1), ("post_attention_layernorm", norm_2),
                       ("self_attn", attention), ("mlp", mlp)):  # fmt: skip
        getattr(layer, name).forward = lambda hidden_states, *_, part=part: part(hidden_states)
    return layer(x, None, None)


FFN = ["up_proj.weight", "up_proj.bias", "down_proj.weight", "down_proj.bias"]
GLU = ["gate_proj.weight", "up_proj.weight", "down_proj.weight"]
# What is proved against Hugging Face or PyTorch elsewhere, for every signature of the contract.
PROVED = {
    "standardize": lambda x: F.layer_norm(x, x.shape[-1:], eps=0.0),
    "layer_norm": lambda x, weight, bias, eps: F.layer_norm(x, weight.shape, weight, bias, eps),
    "rms_norm": lambda x, weight, eps: torch.func.functional_call(
        llama.RMSNorm(len(weight), eps), {"weight": weight}, (x,)
    ),
    "rms_norm_grad": rms_norm_by_autograd,
    "up_project": F.linear,
    "collapse": lambda up_weight, down_weight: torch.linalg.multi_dot([down_weight, up_weight]),
    "feed_forward": as_layer(lambda x, up, *_: llama.FeedForward(up.shape[1], up.shape[0]), FFN),
    "swiglu": as_layer(lambda x, gate, *_: llama.SwiGLU(gate.shape[1], gate.shape[0]), GLU),
}
PROVED |= {"decode": llama.generate, "decoder_layer": layer_of}
for _name in re.findall(r"(\w+)\(", CONTRACT):
    PROVED.setdefault(_name, getattr(llama, _name, None))


@pytest.mark.parametrize("name", re.findall(r"(\w+)\(", CONTRACT))
def test_what_is_expected_is_what_the_proved_parts_give(name):
    for seed in range(5):
        verdict = EXERCISES[name](PROVED[name], seed=seed)
        assert verdict.passed, verdict


@each_exercise
def test_properties_hold_for_the_solution(name):
    it = EXERCISES[name]
    if it._properties:
        for seed in range(20):
            assert failing(it._properties(Draw(seed)), it.solution_function, len(it._outputs)) == []


# The three states.


def test_not_attempted():
    def dots(x, weight, eps): ...

    def returns_dots(x, weight, eps):
        return ...

    def not_implemented(x, weight, eps):
        raise NotImplementedError

    for stub in (dots, returns_dots, not_implemented, None, ...):
        verdict = check.rms_norm(stub)
        assert (verdict.attempted, verdict.passed, verdict.mistake) == (False, False, None)
        assert "not attempted" in verdict.message and "hint()" in verdict.message


def test_a_forgotten_return_is_told():
    def rms_norm(x, weight, eps):
        mean_square = x.square().mean(-1, keepdim=True)  # noqa: F841

    verdict = check.rms_norm(rms_norm)
    assert not verdict.attempted and "no `return` was reached" in verdict.message


def test_two_dots_for_two_outputs_are_not_attempted():
    assert not check.rms_norm_grad(lambda x, weight, eps, grad_output: (..., ...)).attempted


def test_right_says_what_it_was_held_against():
    verdict = check.rms_norm(right)
    assert verdict and verdict.passed and verdict.attempted and verdict.mistake is None
    assert "values and gradients" in verdict.message and "float16, bfloat16" in verdict.message


def test_not_yet_shows_the_smallest_input_got_expected_and_a_question():
    verdict = check.rms_norm(without_root)
    assert (verdict.passed, verdict.attempted, verdict.mistake) == (False, True, "root-forgotten")
    facts = dict(verdict.facts)
    assert (facts["x"], facts["got"], facts["expected"]) == (
        "[[3, 4]]",
        "[[0.24, 0.32]]",
        "[[0.8485, 1.131]]",
    )
    assert verdict.hint.endswith("?") and verdict.hint in str(verdict)


def test_the_second_wrong_run_gives_a_stronger_hint_and_a_new_mistake_starts_anew():
    ladder = check.rms_norm.mistakes["root-forgotten"].hints
    check.rms_norm._hints_given.clear()
    assert [check.rms_norm(without_root).hint for _ in range(4)] == [*ladder, ladder[2]]
    other = check.rms_norm(lambda x, weight, eps: right(x, 1 + weight, eps))
    assert other.hint == check.rms_norm.mistakes["one-plus-weight"].hints[0]


def test_hint_goes_on_from_the_last_verdict():
    ladder = check.rms_norm.mistakes["root-forgotten"].hints
    check.rms_norm._hints_given.clear()
    check.rms_norm(without_root)
    assert [check.rms_norm.hint().text for _ in range(3)] == [ladder[1], ladder[2], ladder[2]]
    assert check.rms_norm(without_root).hint == ladder[2]  # and a run never says less than was said


def test_verdicts_render_as_text_and_as_html_that_escapes_what_the_student_wrote():
    def fails(x, weight, eps):
        raise ValueError("<script>alert(1)</script> & more")

    bundle = check.rms_norm(fails)._repr_mimebundle_()
    assert bundle["text/plain"].startswith("✗ rms_norm · not yet")
    assert "<script>" not in bundle["text/html"] and "&lt;script&gt;" in bundle["text/html"]
    for shown in (check.rms_norm.hint(), check.rms_norm.solution(), check.progress()):
        assert set(shown._repr_mimebundle_()) == {"text/plain", "text/html"}


# What a student may write.


def test_an_exception_is_shown_with_its_line_and_no_traceback():
    def rms_norm(x, weight, eps):
        return weight * x.no_such_method()

    verdict = check.rms_norm(rms_norm)
    assert "AttributeError" in verdict.message and "return weight * x.no_such_method()" in verdict.message
    assert "Traceback" not in verdict.message and len(verdict.message.splitlines()) < 12
    assert verdict.mistake is None and verdict.failed[0] == "raises"


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        (lambda x: x.tolist(), "A list came back"),
        (lambda x: x.numpy(), "A numpy array came back"),
        (lambda x: 1.0, "A float came back"),
        (lambda x: "x", "A str came back"),
        (lambda x: (x, x), "A tuple came back"),
        (lambda x: x[..., :1], "the shape is [1, 1]; expected [1, 2]"),
        (lambda x: x.double(), "the dtype is float64; expected float32"),
        (lambda x: x.to("meta"), "the tensor is on meta; expected on cpu"),
        (lambda x: x / 0, "an infinite number"),
        (lambda x: x * torch.nan, "not a number"),
    ],
)
def test_wrong_type_shape_dtype_device_and_infinite_values_get_a_sentence_each(returned, sentence):
    verdict = check.rms_norm(lambda x, weight, eps: returned(x))
    assert not verdict.passed and sentence.lower() in verdict.message.lower(), verdict


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (torch.ones(2), "give the function itself"),
        (3, "give the function itself"),
        (torch.nn.RMSNorm, "a class"),
        (lambda x: x, "yours takes (x)"),
        (lambda x, weight, *, eps: x, "yours takes (x, weight, *, eps)"),
        (lambda x, eps, weight: x, "The order of the arguments"),
    ],
)
def test_what_cannot_be_called_in_the_right_way_gets_a_sentence(given, sentence):
    verdict = check.rms_norm(given)
    assert not verdict.passed and sentence in verdict.message


def test_one_value_in_place_of_two_gets_a_sentence():
    verdict = check.rms_norm_grad(lambda x, weight, eps, grad_output: x)
    assert "One tensor came back; expected a tuple of 2: grad_x, grad_weight" in verdict.message


def test_writing_into_the_input_is_named_and_the_callers_tensors_are_never_touched():
    def rms_norm(x, weight, eps):
        x.copy_(right(x, torch.ones_like(weight), eps))
        return weight * x

    verdict = check.rms_norm(rms_norm)
    assert verdict.mistake == "input-changed" and "`x`" in verdict.message
    assert check.rms_norm(right).passed  # the next check finds its inputs as they were


def test_a_result_that_depends_on_chance_or_on_earlier_calls_is_named():
    calls = []

    def counts(x, weight, eps):
        calls.append(1)
        return right(x, weight, eps) * len(calls)

    for changing in (lambda x, weight, eps: right(x, weight, eps) + torch.randn(()), counts):
        assert check.rms_norm(changing).mistake == "random"


def test_the_global_random_states_and_defaults_are_left_alone():
    def rms_norm(x, weight, eps):
        torch.manual_seed(0), random.seed(0), numpy.random.seed(0)
        torch.set_default_dtype(torch.float64), torch.set_grad_enabled(False)
        return right(x, weight, eps)

    torch.manual_seed(5), random.seed(5), numpy.random.seed(5)
    expected = torch.rand(()), random.random(), numpy.random.rand()
    torch.manual_seed(5), random.seed(5), numpy.random.seed(5)
    check.rms_norm(rms_norm)
    assert (torch.rand(()), random.random(), numpy.random.rand()) == expected
    assert torch.get_default_dtype() == torch.float32 and torch.is_grad_enabled()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_gradients_are_checked_also_where_they_are_switched_off(mode):
    with mode():
        assert (
            check.rms_norm(lambda x, weight, eps: right(x.detach(), weight, eps), seed=77).mistake
            == "gradient-cut"
        )
    assert check.rms_norm(right, seed=77).passed


def test_the_verdict_does_not_depend_on_the_global_random_state():
    torch.manual_seed(1)
    first = str(check.rms_norm(lambda x, weight, eps: x.flip(-1), seed=3))
    check.rms_norm._hints_given.clear()
    torch.manual_seed(2)
    assert str(check.rms_norm(lambda x, weight, eps: x.flip(-1), seed=3)) == first


def test_what_it_prints_and_warns_is_told_in_a_line_and_not_poured_out(capsys):
    def rms_norm(x, weight, eps):
        print("shape", tuple(x.shape))
        print("eps", eps)
        return right(x, weight, eps)

    verdict = check.rms_norm(rms_norm)
    assert verdict.passed and "It printed, on the first input: shape (1, 2) / eps 1e-06" in verdict.message
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "returned",
    [
        lambda x: x.to_sparse(),
        lambda x: x.to(torch.float8_e4m3fn),
        lambda x: torch.quantize_per_tensor(x.float(), 0.1, 0, torch.qint8),
        lambda x: torch.nested.nested_tensor([x]),
        lambda x: x + 1j,
        lambda x: {"x": x},
        lambda x: (t for t in x),
    ],
)
def test_whatever_comes_back_there_is_a_verdict(returned):
    verdict = check.rms_norm(lambda x, weight, eps: returned(x))
    assert verdict.attempted and not verdict.passed and len(verdict.message) < 1500


def test_a_check_inside_the_function_is_told_and_does_not_go_on_for_ever():
    def rms_norm(x, weight, eps):
        check.rms_norm(rms_norm)
        return x

    assert "the check stands inside your function" in check.rms_norm(rms_norm).message


def test_an_error_of_torch_that_is_called_not_implemented_is_no_stub():
    assert check.rms_norm(lambda x, weight, eps: torch.nn.Module()(x)).attempted


def test_an_exception_that_cannot_be_shown_is_still_an_exception():
    class Strange(Exception):
        def __str__(self):
            return 1 / 0

    def rms_norm(x, weight, eps):
        raise Strange

    assert "It raised Strange" in check.rms_norm(rms_norm).message


def test_printing_without_end_keeps_the_memory_small(monkeypatch):
    monkeypatch.setattr(run, "TIME_LIMIT", 0.3)

    def rms_norm(x, weight, eps):
        while True:
            print("x" * 2000)

    assert len(check.rms_norm(rms_norm).message) < 2000


def test_modes_of_the_caller_do_not_reach_the_check_and_nothing_of_them_is_kept():
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.device("meta"):
        assert check.up_project(lambda x, weight: x @ weight.T, seed=55).passed
    assert check.up_project(lambda x, weight: x @ weight.T, seed=55).passed


def test_a_function_around_a_compiled_one_is_not_taken_for_it():
    compiled = torch.compile(right, backend="eager")

    @functools.wraps(compiled)
    def doubled(*arguments):
        return 2 * compiled(*arguments)

    assert check.rms_norm(compiled).passed and not check.rms_norm(doubled).passed


@pytest.mark.parametrize("kind", ["loop", "stubborn loop", "sleep", "input"])
def test_a_checker_never_hangs(kind, monkeypatch):
    monkeypatch.setattr(run, "TIME_LIMIT", 0.3)

    def rms_norm(x, weight, eps):
        if kind == "sleep":
            time.sleep(5)
        while kind == "loop":
            pass
        stop = time.perf_counter() + 5
        while kind == "stubborn loop" and time.perf_counter() < stop:
            with contextlib.suppress(BaseException):
                time.sleep(0.01)
        return input() if kind == "input" else x

    start = time.perf_counter()
    verdict = check.rms_norm(rms_norm)
    assert time.perf_counter() - start < 3.5 and not verdict.passed
    assert ("input()" if kind == "input" else "was stopped") in verdict.message


def test_exit_ends_the_answer_and_not_the_course():
    verdict = check.rms_norm(lambda x, weight, eps: exit())
    assert "SystemExit" in verdict.message


def test_a_gradient_that_is_cut_is_named_and_one_that_misses_a_weight_is_noted():
    assert check.rms_norm(lambda x, weight, eps: right(x.detach(), weight, eps)).mistake == "gradient-cut"
    verdict = check.rms_norm(lambda x, weight, eps: right(x, weight.detach(), eps))
    assert verdict.passed and "No gradient reaches `weight`" in verdict.message


def test_in_place_lines_that_autograd_cannot_follow_are_noted():
    def rms_norm(x, weight, eps):
        y = x.float().clone()
        y /= (y.square().mean(-1, keepdim=True) + eps).sqrt()
        return weight * y.to(x.dtype)

    verdict = check.rms_norm(rms_norm)
    assert verdict.passed and "writes into a tensor that autograd needs" in verdict.message


def test_a_tensor_made_on_the_cpu_is_noted_also_where_there_is_no_gpu():
    def rms_norm(x, weight, eps):
        return right(x, weight, eps) * torch.ones(x.shape[-1], dtype=x.dtype)

    verdict = check.rms_norm(rms_norm)
    assert verdict.passed and "On a GPU it would fail" in verdict.message, verdict


def test_a_gpu_is_tried_where_there_is_one(monkeypatch):
    moved = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.Tensor, "cuda", lambda self: moved.append(self) or self)
    assert check.rms_norm(right).passed and moved

    def only_before(x, weight, eps):  # stands for a function that fails on the GPU
        if moved:
            raise RuntimeError("found at least two devices")
        return right(x, weight, eps)

    moved.clear()
    verdict = check.rms_norm(only_before)
    assert not verdict.passed and "On the CPU it is right. On the GPU" in verdict.message


def test_a_module_goes_to_the_gpu_as_a_copy(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.Tensor, "cuda", lambda self, *_: self)
    moved = []
    monkeypatch.setattr(torch.nn.Linear, "cuda", lambda self: moved.append(self) or self)
    mlp = torch.nn.Linear(3, 3)

    def add_mlp(x, mlp):
        return x + mlp(x)

    it = temporary(add_mlp, [Case((torch.ones(2, 3), mlp))])
    assert it(lambda x, mlp: mlp(x) + x).passed
    assert moved and all(module is not mlp for module in moved)


def test_an_error_inside_a_part_of_the_package_is_shown_at_the_students_line():
    def rms_norm(x, weight, eps):
        return llama.RMSNorm(1 + len(weight), eps)(x)

    verdict = check.rms_norm(rms_norm)
    assert "the last axis of hidden_states" in verdict.message
    assert "return llama.RMSNorm(1 + len(weight), eps)(x)" in verdict.message


def test_a_list_that_is_written_into_is_named():
    def total(numbers):
        return sum(numbers)

    def careless(numbers):
        result = sum(numbers)
        numbers.clear()
        return result

    it = temporary(total, [Case(([1, 2, 3],))])
    assert it(lambda numbers: sum(numbers)).passed
    assert it(careless).mistake == "input-changed"


def test_numbers_beyond_the_root_of_the_largest_hide_no_others():
    def mask(n):
        return torch.tensor([0.0, torch.finfo(torch.float64).min], dtype=torch.float64)

    it = temporary(mask, [Case((2,))])
    assert it(lambda n: mask(n)).passed
    assert not it(lambda n: mask(n) + torch.tensor([1.0, 0.0])).passed


def test_the_question_after_an_error_goes_by_its_message_and_not_by_a_word_that_is_a_kind():
    def rms_norm(x, weight, eps):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    check.rms_norm._hints_given.clear()
    assert "What does the message complain of" in check.rms_norm(rms_norm).message


def test_an_order_of_casts_that_rounds_otherwise_is_accepted_and_mentioned():
    verdict = check.rms_norm(
        lambda x, weight, eps: torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, eps)
    )
    assert verdict.passed and "Llama goes back to 16 bits first" in verdict.message


def test_a_form_that_is_right_but_loses_digits_on_a_hard_input_passes_with_a_note():
    def standardize(x):
        mean = x.mean(-1, keepdim=True)
        return (x - mean) / (x.square().mean(-1, keepdim=True) - mean.square()).sqrt()

    verdict = check.standardize(standardize)
    assert verdict.passed and "[30001, 30003]" in verdict.message


def test_what_no_mistake_explains_is_told_by_properties_in_order():
    verdict = check.rms_norm(lambda x, weight, eps: right(x, weight, eps) * 1.5)
    assert verdict.mistake is None and "scaled" in verdict.failed and "1.5 times" in verdict.message
    verdict = check.rms_norm(lambda x, weight, eps: weight * x * (1 + eps))
    assert "sees-scale" in verdict.failed


def test_a_prediction_is_judged_without_showing_the_answer():
    verdict = check.constant_token([0, 0, 0, 0], [1, 1, 1, 1])
    assert verdict.mistake == "exchanged" and "expected" not in verdict.message
    assert not check.constant_token(..., ...).attempted
    assert check.constant_token([1, 1, 1, 1.0], torch.zeros(4)).passed
    assert not check.constant_token([1, 1], [0, 0]).passed and not check.constant_token(1).passed


def test_a_function_to_repair_is_not_attempted_as_it_is_given_but_a_change_that_repairs_nothing_is():
    def repair_rms_norm(x, weight, eps):
        wide = x.float()  # as in the notebook, with a comment
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)

        return weight.float() * wide

    def changed(x, weight, eps):
        return (weight.float() * x.float()) * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + eps)

    def without_return(x, weight, eps):
        weight * x

    assert "As it was given" in str(check.repair_rms_norm(repair_rms_norm))
    assert check.repair_rms_norm(changed).mistake == "left-in-fp32"
    assert "no `return` was reached" in str(check.repair_rms_norm(without_return))
    assert check.repair_rms_norm(right).passed
    assert check.repair_rms_norm(without_root).mistake == "root-forgotten"


def test_an_exercise_that_is_not_there_gets_a_sentence():
    with pytest.raises(AttributeError, match=r"Do you mean check\.rms_norm"):
        check.rmsnorm  # noqa: B018


# Lessons to come: their signatures have numbers, dtypes, functions, modules and integer tensors.


def temporary(solution, cases, **options):
    made = exercise.Exercise(
        solution, lesson="", cases=lambda draw: cases, mistakes=(), hints=("?", "", ""), **options
    )
    del EXERCISES[made.name]
    return made


def test_floats_integers_dtypes_and_functions_can_be_arguments_and_results():
    def learning_rate(step, peak, warmup):
        return peak * min(1.0, (step + 1) / warmup)

    cases = [Case((0, 3e-4, 10)), Case((20, 3e-4, 10))]
    it = temporary(learning_rate, cases)
    assert it(lambda step, peak, warmup: min((step + 1) * peak / warmup, peak)).passed
    wrong = it(lambda step, peak, warmup: peak * step / warmup)
    assert not wrong.passed and dict(wrong.facts)["expected"] == "3e-05"

    def row_parallel(x, weight, all_reduce):
        return all_reduce(x @ weight.T)

    it = temporary(row_parallel, [Case((torch.ones(2, 3), torch.ones(4, 3), torch.neg))])
    assert it(lambda x, w, f: f(torch.nn.functional.linear(x, w))).passed
    assert "neg" in str(it(lambda x, w, f: x @ w.T))


def test_routing_gives_weights_and_integers_and_a_module_is_handed_over_as_a_copy():
    def route(logits, k):
        weights, indices = logits.topk(k)
        return weights.softmax(-1), indices

    it = temporary(route, [Case((torch.tensor([[2.0, 1.0, 0.0]]), 2))], outputs=("weights", "indices"))
    assert it(
        lambda logits, k: (logits.topk(k)[0].softmax(-1), logits.argsort(descending=True)[:, :k])
    ).passed
    assert not it(lambda logits, k: (logits.topk(k)[0].softmax(-1), logits.argsort()[:, :k])).passed

    def add_mlp(x, mlp):
        return x + mlp(x)

    mlp = torch.nn.Linear(3, 3)
    it = temporary(add_mlp, [Case((torch.ones(2, 3), mlp), gradients=True)])

    def careless(x, mlp):
        mlp.weight.data.zero_()
        return x + mlp(x)

    assert it(lambda x, mlp: mlp(x) + x).passed
    assert not it(careless).passed and mlp.weight.any()


# Progress.


def test_progress_is_kept_in_a_file_and_what_was_right_stays_right(tmp_path):
    rms_norm = without_root
    rms_norm.__name__ = "rms_norm"
    check.rms_norm(rms_norm)
    assert "✗ rms_norm" in str(check.progress())
    check.rms_norm(lambda x, weight, eps: right(x, weight, eps))
    check.rms_norm(rms_norm)
    assert "✓ rms_norm" in str(check.progress())
    assert json.loads((tmp_path / record.FILE).read_text())["exercises"]["rms_norm"]["state"] == "right"


def test_suspects_and_stubs_are_not_entered(tmp_path):
    def suspect_1(x, weight, eps):
        return x

    def rms_norm(x, weight, eps): ...

    check.rms_norm(suspect_1)
    check.rms_norm(rms_norm)
    assert not (tmp_path / record.FILE).exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"exercises": 3}', "[" * 200_000, "\x00"])
def test_an_unreadable_record_is_set_aside_and_nothing_else_happens(tmp_path, content):
    (tmp_path / record.FILE).write_text(content)
    assert "○ rms_norm" in str(check.progress())
    assert check.rms_norm(lambda x, weight, eps: right(x, weight, eps)).passed
    assert "✓ rms_norm" in str(check.progress())
    assert (tmp_path / record.FILE).with_suffix(".unreadable").read_text() == content


def test_where_nothing_can_be_written_progress_lasts_as_long_as_the_kernel(monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError

    monkeypatch.setattr(record.tempfile, "NamedTemporaryFile", refuse)
    assert check.rms_norm(lambda x, weight, eps: right(x, weight, eps)).passed
    assert "✓ rms_norm" in str(check.progress()) and "read-only" in str(check.progress())


def test_two_exercises_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two exercises are named rms_norm"):
        exercise.exercise(cases=list, mistakes=(), hints=("", "", ""))(check.rms_norm.solution_function)
