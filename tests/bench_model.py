"""How fast the model is, beside Hugging Face's: `make bench-model` prints the table and writes the record.

The two take turns of half a second or more, five times each, in one process with two threads; the median of
each counts, and of the two only their ratio. Prefill: logits of the last of 128 tokens. Decode: 64 greedy
tokens with a cache. Training step: loss, backward and AdamW on 4 × 64 tokens. Memory: what attention over S
tokens takes, eager and sdpa.
"""

import argparse
import gc
import statistics
import sys
import time
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
TURN = 0.5  # seconds at least, with as many calls as that takes: one short call is noise


def pair(config, dtype):
    """Ours and Hugging Face's, with the same weights."""
    torch.manual_seed(0)
    ours = Llama(config).to(dtype)
    theirs = reference.LlamaForCausalLM(reference.llama_config(config, "sdpa")).to(dtype)
    theirs.load_state_dict(ours.state_dict(), strict=True)
    return ours, theirs


def works(ours, theirs, config):
    """What is timed: by name, one function for ours and one for theirs."""
    ids = torch.randint(config.vocab_size, (1, 128))
    batch = torch.randint(config.vocab_size, (4, 64))
    quiet = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0}

    def prefill(model, name):
        with torch.inference_mode():
            return model(ids, **{name: 1})

    def step(model, optimizer, logits):
        loss = F.cross_entropy(logits(model(batch))[:, :-1].flatten(0, 1).float(), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    optimizers = [torch.optim.AdamW(model.parameters(), lr=1e-4) for model in (ours, theirs)]
    return {
        "prefill": (lambda: prefill(ours, "logits_to_keep"), lambda: prefill(theirs, "logits_to_keep")),
        "decode": (
            lambda: ours.generate(ids[:, :8], 64),
            lambda: theirs.generate(ids[:, :8], max_new_tokens=64, **quiet),
        ),
        "training step": (
            lambda: step(ours, optimizers[0], lambda out: out),
            lambda: step(theirs, optimizers[1], lambda out: out.logits),
        ),
    }


def ratio(ours, theirs, rounds=ROUNDS):
    """How many times as fast ours is: the medians of turns."""
    start = time.perf_counter()
    ours(), theirs()  # warm up
    calls = max(1, round(2 * TURN / (time.perf_counter() - start)))
    times = {ours: [], theirs: []}
    for round_ in range(rounds):
        for work in (ours, theirs) if round_ % 2 else (theirs, ours):  # neither is always the first
            gc.collect()
            start = time.perf_counter()
            for _ in range(calls):
                work()
            times[work].append(time.perf_counter() - start)
    return statistics.median(times[theirs]) / statistics.median(times[ours])


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
    lines, missed = [f"{'shape':18}{'dtype':10}{'prefill':>9}{'decode':>9}{'training step':>15}"], []
    print(lines[0])
    for shape, config in SHAPES.items():
        for dtype in (torch.float32, torch.bfloat16):
            ours, theirs = pair(config, dtype)
            ratios = {name: ratio(*each) for name, each in works(ours, theirs, config).items()}
            missed += [
                f"{shape}, {dtype}: {name}"
                for name, r in ratios.items()
                if r < WANTED.get((shape, name), 1.0)
            ]
            columns = zip(ratios.values(), (8, 8, 14), strict=True)
            cells = "".join(f"{each:{width}.2f}×" for each, width in columns)
            lines.append(f"{shape:18}{str(dtype).removeprefix('torch.'):10}{cells}")
            print(lines[-1], flush=True)
    lines += ["", f"{'S':>6}{'eager, MB':>12}{'sdpa, MB':>12}"]
    for S in (128, 512, 2048):
        lines.append(f"{S:6}{memory('eager', S):12.1f}{memory('sdpa', S):12.1f}")
    print("\n".join(lines[-4:]))
    text = " ".join(__doc__.split("\n\n")[1].split())
    RECORD.write_text(
        f"# How fast the model is\n\n{text}\n\n```\n" + "\n".join(lines) + "\n```\n", encoding="utf-8"
    )
    print("Missed: " + "; ".join(missed) if missed else "At least as fast as promised.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
