"""Counts instructions of one piece of work by callgrind, in all and by function."""

import re
import subprocess

# Functions that are kept in the stored figures; what is below is told together.
KEPT = 25


def count(program, name, build):
    """{instructions, allocations, functions} of one piece of work."""
    out = build / f"callgrind.{name}.out"
    command = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no", "--collect-atstart=no",
               f"--callgrind-out-file={out}", program, name]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    report = re.search(r"^allocations (\d+) bytes (\d+)$", done.stdout, re.M)
    if done.returncode or not report:
        raise RuntimeError(f"{name} did not end well under valgrind: {done.stdout}{done.stderr}")
    functions = costs(out.read_text(errors="replace"))
    out.unlink()
    most = sorted(functions.items(), key=lambda item: (-item[1], item[0]))
    return {"instructions": sum(functions.values()), "allocations": int(report[1]), "functions": dict(most[:KEPT])}


def costs(text):
    """{function: its own instructions} of a callgrind file. Names are given in full once and by number afterwards; the
    line behind `calls=` is the cost of the call and belongs to the callee."""
    names, functions, current, is_call = {}, {}, None, False
    for line in text.splitlines():
        if line.startswith("fn="):
            number, _, name = line[3:].partition(" ")
            if name:
                names[number] = plain(name)
            current = names[number]
        elif line.startswith("calls="):
            is_call = True
        elif line[:1] in "+-*0123456789" and line:
            if is_call:
                is_call = False
            elif current is not None:
                functions[current] = functions.get(current, 0) + int(line.split()[1])
        elif line.startswith("cfn="):
            number, _, name = line[4:].partition(" ")
            if name:
                names[number] = plain(name)
    return functions


def plain(name):
    """A function's name without what changes from build to build."""
    return re.sub(r"::h[0-9a-f]{16}|\[[0-9a-f]{16}\]|'\d+$", "", name)


def growth(before, after, most=5):
    """Lines about the functions that grew most."""
    old, new = before.get("functions", {}), after["functions"]
    # A function that was below those kept had at most as much as the least of them.
    least = min(old.values(), default=0)
    grown = sorted(((new[f] - old.get(f, min(least, new[f])), f) for f in new), reverse=True)
    return [f"{more:+,} {function} ({old.get(function, 'below ' + format(least, ','))} -> {new[function]:,})"
            for more, function in grown[:most] if more > 0]
