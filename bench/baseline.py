"""The stored figures of `make bench-check`, bench/baseline.toml: written here, so that a change shows as a small diff."""

import json


def update(path, stored, environment, measured, reason, differences):
    """Stores the measured figures. Figures that grew need a reason, which is stored with them."""
    kept = stored["benchmarks"] if stored["environment"] == environment else {}
    grown = []
    for name, figures in measured.items():
        if name in kept:
            lines, failed = differences(name, kept[name], figures)
            print("\n".join(lines) or f"same   {name}")
            grown += [name] if failed else []
    if grown and not reason:
        print(f"not stored: {', '.join(grown)} grew. Say why: make bench-check UPDATE=\"reason\"")
        return 1
    reasons = {**stored.get("reasons", {}), **{name: reason for name in grown}}
    # A figure that could not be measured today stays.
    stays = {name: {**kept.get(name, {}), **figures} for name, figures in measured.items()}
    path.write_text(text(environment, {**kept, **stays}, reasons))
    print(f"stored in {path}")
    return 0


def text(environment, benchmarks, reasons):
    lines = ["# Figures that `make bench-check` compares with; `make bench-check UPDATE=\"reason\"` writes them.",
             "# They are counts, so they hold on every machine with this compiler, libc and target.", "",
             "[environment]", *(f"{key} = {json.dumps(value)}" for key, value in environment.items()), "",
             "# Why the figures of a benchmark grew the last time that they did.", "[reasons]",
             *(f"{json.dumps(name)} = {json.dumps(why)}" for name, why in sorted(reasons.items()))]
    for name, figures in sorted(benchmarks.items()):
        lines += ["", f"[benchmarks.{json.dumps(name)}]"]
        lines += [f"{key} = {value}" for key, value in figures.items() if key != "functions"]
        if "functions" in figures:
            lines += ["", f"[benchmarks.{json.dumps(name)}.functions]"]
            lines += [f"{json.dumps(function)} = {cost}" for function, cost in figures["functions"].items()]
    return "\n".join(lines) + "\n"
