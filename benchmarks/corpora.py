"""Corpus jobs: the same output after kills, and the executors' speed against a plain loop.

    python -m benchmarks.corpora FOLDER [--sentences 200000] [--kills 10] [--rounds 3]
        [--executors local ray] [--save]

FOLDER is a saved translator. The sentences are of the built-in grammar. The reference is a loop
over `Translator.translate`, with as many lines at a time as a shard has: with other batches,
rounding may decide otherwise between two translations of almost equal score. Each executor then
translates the same file with two workers; at random moments a worker or the driver is killed with
SIGKILL, and the command is given again if it was the driver. For the speed, the loop and the local
executor with one worker run in turns of three seconds, stopped in between, so that both meet the
same conditions of a shared machine; their own turns count, from the end of the first shard.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import contest

TURN = 3.0  # seconds
SEARCH = dict(beam_size=1, max_extra_length=10, tokens_per_batch=16384)


def written(path: Path, count: int) -> None:
    """Write sentences of the grammar, one per line."""
    from keras_transformer import demo

    sentences = [source for source, _ in demo.pairs(count, seed=1)]
    path.write_text("".join(f"{x}\n" for x in sentences), "utf-8")


def plain(folder: str, source: str, output: str, shard_lines: int) -> None:
    """Translate in a plain loop; print the time after the first piece and at the end."""
    from keras_transformer import Translator

    lines = Path(source).read_text("utf-8").split("\n")[:-1]
    translator, times = Translator.load(folder), []
    with open(output, "w", encoding="utf-8") as file:
        for start in range(0, len(lines), shard_lines):
            translations = translator.translate(lines[start : start + shard_lines], **SEARCH)
            file.write("".join(f"{x}\n" for x in translations))
            times.append(time.monotonic())
    print(json.dumps(times))


def executor(folder: str, source: str, output: str, shard_lines: int, **options: object) -> None:
    """Translate with an executor; print when each shard was done."""
    from keras_transformer import translate_corpus

    times: list[float] = []
    translate_corpus(
        folder, source, output, shard_lines=shard_lines, **options, **SEARCH,
        report=lambda outcome: times.append(time.monotonic()),
    )  # fmt: skip
    print(json.dumps(times[1:]))  # without the report at the start


def started(task: str, *arguments: object, **options: object) -> subprocess.Popen:
    """Start one of the functions above in a separate process."""
    command = [sys.executable, "-m", "benchmarks.corpora", "--task", task]
    command += [json.dumps([[str(x) if isinstance(x, Path) else x for x in arguments], options])]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def below(process: int) -> list[int]:
    """Return the workers among the descendants of a process."""
    parents, commands = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            number, status = int(folder.name), folder.joinpath("stat").read_text()
            parents[number] = int(status.rpartition(")")[2].split()[1])
            commands[number] = folder.joinpath("cmdline").read_bytes()
        except (OSError, IndexError):
            continue

    def is_below(process_id):
        while process_id in parents and process_id != process:
            process_id = parents[process_id]
        return process_id == process

    marks = b"keras_transformer.corpora.worker", b"ray::MapWorker"
    return [x for x in parents if any(y in commands.get(x, b"") for y in marks) and is_below(x)]


def killed(folder: str, source: Path, output: Path, shard_lines: int, **options: object) -> dict:
    """Run an executor and kill its processes at random; return counts."""
    generator, kills = random.Random(0), options.pop("kills")
    counts = dict(drivers=0, workers=0, seconds=time.monotonic())
    shards = -(-sum(1 for _ in source.open()) // shard_lines)
    # Kill after these numbers of shards, not seconds: the job runs then, however slow the machine.
    moments = sorted(generator.sample(range(shards - 1), kills))
    driver = started("executor", folder, source, output, shard_lines, **options)
    while driver.poll() is None or moments:
        if driver.poll() is not None:
            if driver.returncode not in (0, -signal.SIGKILL):
                raise RuntimeError(f"the driver ended with status {driver.returncode}")
            driver = started("executor", folder, source, output, shard_lines, **options)
        done = len(list(output.glob("shard-*.txt")))
        if moments and done > moments[0]:
            workers = below(driver.pid)
            victim = "drivers" if generator.random() < 0.3 else "workers"
            if victim == "workers" and not workers:
                continue
            time.sleep(generator.random())
            try:
                os.kill(driver.pid if victim == "drivers" else workers[0], signal.SIGKILL)
            except ProcessLookupError:
                continue
            generator.shuffle(workers)
            counts[victim] += 1
            moments.pop(0)
            if victim == "drivers":
                driver.wait()
            print(f"{done} shards: one of the {victim} is killed", file=sys.stderr, flush=True)
        time.sleep(0.05)
    counts["seconds"] = time.monotonic() - counts["seconds"]
    return counts


def checked(output: Path) -> dict:
    """Return the numbers of shards and lines of an output folder, and the hash of all lines."""
    digest, lines, notes = hashlib.sha256(), 0, sorted(output.glob("shard-*.json"))
    shards = sorted(output.glob("shard-*.txt"))
    if [x.stem for x in notes] != [x.stem for x in shards]:
        raise RuntimeError("shards and notes differ")
    for shard, note in zip(shards, notes, strict=True):
        data, said = shard.read_bytes(), json.loads(note.read_text())
        if said["sha256"] != hashlib.sha256(data).hexdigest():
            raise RuntimeError(f"{shard} is not what is noted beside it")
        digest.update(data)
        lines += data.count(b"\n")
    others = [x.name for x in output.iterdir() if x not in (*shards, *notes)]
    return dict(shards=len(shards), lines=lines, sha256=digest.hexdigest(), others=others)


def rate(times: list[float], turns: list[tuple[float, float]], shard_lines: int) -> float:
    """Return the lines per second in a program's own turns, from the end of the first shard."""
    first, last = times[0], times[-1]
    seconds = sum(max(0.0, min(end, last) - max(begin, first)) for begin, end in turns)
    return (len(times) - 1) * shard_lines / seconds


def take_turns(processes: dict[str, subprocess.Popen]) -> dict[str, list[tuple[float, float]]]:
    """Let processes run in turn, stopped in between, until one has ended; return their turns."""
    turns: dict[str, list[tuple[float, float]]] = {task: [] for task in processes}

    def send(task, number):
        for process_id in (processes[task].pid, *below(processes[task].pid)):
            os.kill(process_id, number)

    def has_ended(task):
        look = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, processes[task].pid, look) is not None

    while not any(map(has_ended, processes)):
        for task in processes:
            for other in set(processes) - {task}:
                send(other, signal.SIGSTOP)
            send(task, signal.SIGCONT)
            begin = time.monotonic()
            time.sleep(TURN)
            turns[task].append((begin, time.monotonic()))
    for task in processes:
        send(task, signal.SIGCONT)
        turns[task].append((time.monotonic(), float("inf")))
    return turns


def speeds(folder: str, source: Path, room: Path, shard_lines: int, rounds: int) -> dict:
    """Return the rates of the plain loop and of the executor, in turns, and processor times."""
    results: dict[str, list] = dict(plain=[], executor=[], plain_seconds=[], executor_seconds=[])
    for number in range(rounds):
        processes = {
            task: started(task, folder, source, room / f"{task}{number}", shard_lines)
            for task in ("plain", "executor")
        }
        turns = take_turns(processes)
        for task, process in processes.items():
            times = json.loads(process.stdout.read())
            usage = os.wait4(process.pid, 0)[2]  # includes the worker: the driver waits for it
            results[task].append(rate(times, turns[task], shard_lines))
            results[f"{task}_seconds"].append(usage.ru_utime + usage.ru_stime)
        print({name: x[-1] for name, x in results.items()}, file=sys.stderr, flush=True)
    return results


def main() -> None:
    """Run all and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", help="a saved translator")
    parser.add_argument("--sentences", type=int, default=200_000)
    parser.add_argument("--shard-lines", type=int, default=2_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3, help="pairs of timed runs")
    parser.add_argument("--timed", type=int, default=20_000, help="sentences of a timed run")
    parser.add_argument("--executors", nargs="*", default=["local", "ray"])
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    parser.add_argument("--task", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        arguments, named = json.loads(options.task[1])
        {"plain": plain, "executor": executor}[options.task[0]](*arguments, **named)
        return
    if options.folder is None:
        parser.error("give the folder of a saved translator")
    parts = []
    with tempfile.TemporaryDirectory() as name:
        room = Path(name)
        if options.sentences:
            parts.append(same_bytes(room, options))
        if options.rounds:
            parts += ratios(room, options)
    contest.report("corpora", "Corpora", parts, options.save)


def same_bytes(room: Path, options: argparse.Namespace) -> str:
    """Return the table of the runs whose processes are killed."""
    source, lines = room / "source.txt", options.sentences
    written(source, lines)
    reference = room / "reference.txt"
    begin = time.monotonic()
    task = started("plain", options.folder, source, reference, options.shard_lines)
    if task.wait():
        raise RuntimeError("the reference failed")
    data = reference.read_bytes()
    seconds, digest = time.monotonic() - begin, hashlib.sha256(data).hexdigest()
    count = data.count(b"\n")
    rows = [["`Translator.translate`", "", f"{count:,}", "", "", f"{seconds:.0f}", digest]]
    for executor in options.executors:
        output = room / executor
        settings = dict(executor=executor, processes=2, kills=options.kills)
        counts = killed(options.folder, source, output, options.shard_lines, **settings)
        facts = checked(output)
        rows.append(
            [
                executor,
                f"{facts['shards']:,}",
                f"{facts['lines']:,}",
                counts["workers"],
                counts["drivers"],
                f"{counts['seconds']:.0f}",
                facts["sha256"],
            ]
        )
        print(rows[-1], facts["others"], file=sys.stderr, flush=True)
    header = [
        "",
        "shards",
        "lines",
        "workers killed",
        "drivers killed",
        "s",
        "SHA-256",
    ]
    return f"## {lines:,} sentences\n\n{contest.table(header, rows)}"


def ratios(room: Path, options: argparse.Namespace) -> list[str]:
    """Return the table of the timed runs."""
    source = room / "timed.txt"
    written(source, options.timed)
    results = speeds(options.folder, source, room, options.shard_lines, options.rounds)
    pairs = list(zip(results["executor"], results["plain"], strict=True))
    rows = [
        [i + 1, f"{y:,.0f}", f"{x:,.0f}", f"{x / y:.2f}", f"{b:.1f}", f"{a:.1f}"]
        for i, ((x, y), a, b) in enumerate(
            zip(pairs, results["executor_seconds"], results["plain_seconds"], strict=True)
        )
    ]
    header = ["pair", "plain lines/s", "executor lines/s", "ratio", "plain CPU s", "executor CPU s"]
    ratio = statistics.median(x / y for x, y in pairs)
    cpu = statistics.median(
        y / x for x, y in zip(results["executor_seconds"], results["plain_seconds"], strict=True)
    )
    told = (
        f"Median ratio of the rates: {ratio:.2f}; of the processor time, start-up included: "
        f"{cpu:.2f}."
    )
    title = f"## One worker beside a plain loop, {options.timed:,} sentences"
    return [title, contest.table(header, rows), told]


if __name__ == "__main__":
    main()
