"""How fast the model is, beside Hugging Face's: `make bench-model` prints the table and writes the record.

How many times as fast ours is: medians of five rounds, in one process with two threads. Each round builds
both models anew and gives every work eight seconds or more, in which the two take turns call by call, so that
a slow moment of the machine meets both. Prefill: logits of the last of 128 tokens. Decode: 64 greedy tokens
with a cache. Training step: loss, backward and PyTorch's fused AdamW on 4 × 64 tokens. The last row is the
model beside a second one of its own kind: how far from 1 chance leads. Memory: what attention over S tokens
takes at its peak, eager and sdpa.

The Makefile bids glibc keep freed memory: to fetch 600 MB of pages from the system in every training step
takes a tenth of it, a time that is neither model's and differs from one step to the next.
"""

import argparse
import gc
import statistics
import sys
import time
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F

from lecture_utils.llama import PRESETS, Llama, LlamaConfig
from lecture_utils.parity import reference

RECORD = Path(__file__).parent / "records" / "model_speed.md"
SHAPES = {
    "6 layers, H 256": LlamaConfig(
        vocab_size=4096,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=6,
        num_attention_heads=8,
        num_key_value_heads=4,
    ),
    "SmolLM2-135M": PRESETS["SmolLM2-135M"],
}
# Ours must be at least so many times as fast.
WANTED = {("6 layers, H 256", "decode"): 1.3}
ROUNDS = 5
ROUND = 8  # seconds for each work, with as many calls as that takes,
PAIRS = 6  # and at least so many of each model


def theirs(config):
    """Hugging Face's Llama."""
    return reference.LlamaForCausalLM(reference.llama_config(config, "sdpa"))


def works(model, config):
    """What is timed: functions by name; on the same tokens for every model."""
    chance = torch.Generator().manual_seed(0)
    ids = torch.randint(config.vocab_size, (1, 128), generator=chance)
    batch = torch.randint(config.vocab_size, (4, 64), generator=chance)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def prefill():
        with torch.inference_mode():
            model(ids, logits_to_keep=1)

    def decode():
        if isinstance(model, Llama):
            model.generate(ids[:, :8], 64)
        else:
            quiet = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0}
            model.generate(ids[:, :8], max_new_tokens=64, **quiet)

    def step():
        logits = model(batch) if isinstance(model, Llama) else model(batch).logits
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return {"prefill": prefill, "decode": decode, "training step": step}


def ratio(one, other):
    """How many times as fast `one` is, called in turn with `other`."""
    start = time.perf_counter()
    one(), other()  # warm up
    pairs = max(PAIRS, round(ROUND / (time.perf_counter() - start)))
    times = {one: [], other: []}
    gc.collect()
    for pair in range(pairs):
        for work in (one, other) if pair % 2 else (other, one):  # neither is always the first
            start = time.perf_counter()
            work()
            times[work].append(time.perf_counter() - start)
    return statistics.median(times[other]) / statistics.median(times[one])


def new_round(one, other, config, dtype, other_first):
    """By work, how many times as fast the first model is, both built anew: they are gone after the round."""
    models = {}
    for build in (other, one) if other_first else (one, other):  # where memory lies counts as well
        models[build] = build(config).to(dtype)
    models[other].load_state_dict(models[one].state_dict())
    ours, others = works(models[one], config), works(models[other], config)
    return {name: ratio(ours[name], others[name]) for name in ours}


def compare(one, other, config, dtype):
    """By work, how many times as fast the first model is: the medians of the rounds."""
    found = [new_round(one, other, config, dtype, bool(i % 2)) for i in range(ROUNDS)]
    return {name: statistics.median(each[name] for each in found) for name in found[0]}


def memory(implementation, S):
    """Bytes that a forward pass of one layer over S tokens takes at its peak, in MB."""
    from torch.profiler import ProfilerActivity, profile

    from lecture_utils.llama import Attention, RotaryEmbedding

    config = SHAPES["6 layers, H 256"]
    part, x = Attention(config, 0, implementation), torch.randn(1, S, config.hidden_size)
    cos, sin = RotaryEmbedding(config)(torch.arange(S))
    with torch.inference_mode(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        part(x, cos, sin)
    now = most = 0
    for event in seen.profiler.kineto_results.events():
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
    return most / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-model", description=__doc__.split("\n\n")[0])
    parser.parse_args()
    torch.set_num_threads(2)
    torch.manual_seed(0)
    lines, missed = [f"{'shape':28}{'dtype':10}{'prefill':>9}{'decode':>9}{'training step':>15}"], []
    print(lines[0])

    def add_row(shape, dtype, ratios):
        prefill, decode, step = (f"{each:.2f}×" for each in ratios.values())
        lines.append(f"{shape:28}{str(dtype).removeprefix('torch.'):10}{prefill:>9}{decode:>9}{step:>15}")
        print(lines[-1], flush=True)

    for shape, config in SHAPES.items():
        for dtype in (torch.float32, torch.bfloat16):
            ratios = compare(Llama, theirs, config, dtype)
            add_row(shape, dtype, ratios)
            missed += [
                f"{shape}, {dtype}: {name}" for name, r in ratios.items() if r < WANTED.get((shape, name), 1)
            ]
    # `partial` makes a second builder of the same model.
    itself = compare(Llama, partial(Llama), SHAPES["SmolLM2-135M"], torch.float32)
    add_row("SmolLM2-135M beside itself", torch.float32, itself)
    lines += ["", f"{'S':>6}{'eager, MB':>12}{'sdpa, MB':>12}"]
    for S in (128, 512, 2048):
        lines.append(f"{S:6}{memory('eager', S):12.1f}{memory('sdpa', S):12.1f}")
    print("\n".join(lines[-4:]))
    text = "\n\n".join(" ".join(each.split()) for each in __doc__.split("\n\n")[1:])
    RECORD.write_text(
        f"# How fast the model is\n\n{text}\n\n```\n" + "\n".join(lines) + "\n```\n", encoding="utf-8"
    )
    print("Missed: " + "; ".join(missed) if missed else "At least as fast as promised.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
