"""Read the texts of a file, or write it with other texts, with limited time and memory.

Run by `readers.Readers` as a script, with this folder as its import path, so that it starts without
the package. Reads a line of JSON and a file from stdin, and writes a line of JSON to stdout,
followed by the new file if the request has texts.
"""

import importlib
import json
import sys


def limit(seconds: int, most_bytes: int) -> None:
    """Limit the processor time and the memory of this process, except on Windows."""
    try:
        import resource
    except ImportError:  # Windows: only the server's time limit for requests ends the process
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Answer the request on stdin."""
    asked = json.loads(sys.stdin.buffer.readline())
    limit(asked["seconds"], asked["most_bytes"])
    content, file = sys.stdin.buffer.read(), b""
    try:
        reader = importlib.import_module(asked["reader"])
        if asked["texts"] is None:
            answer = dict(zip(("texts", "left"), reader.read(content), strict=True))
            letters = sum(map(len, answer["texts"]))
            if len(answer["texts"]) > asked["most_texts"] or letters > asked["most_letters"]:
                number = len(answer["texts"])
                answer = {"large": f"{number} paragraphs of {letters} characters"}
        else:
            answer, file = {}, reader.filled(content, asked["texts"])
    except ImportError as error:
        answer = {"missing": str(error)}
    except MemoryError:
        answer = {"large": "one that takes more memory"}
    except ValueError as error:
        answer = {"error": str(error)}
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + file)


if __name__ == "__main__":
    main()
