#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy (.clang-tidy) over the library's sources, those that PARTITA_BUILD_DIR/compile_commands.json names.

A file takes about five seconds, so a clean one is remembered in PARTITA_BUILD_DIR/tidy by a hash of all that the verdict
depends on: the text after the preprocessor (with comments, which can silence a check), the checks, clang-tidy itself.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("PARTITA_BUILD_DIR", ROOT / "build"))
CLEAN = BUILD / "tidy"
FOLDERS = [ROOT / folder for folder in ("src", "passes", "kernels")]


def library_sources():
    """(file, compiler command) of each source of the library in the build."""
    with open(BUILD / "compile_commands.json", encoding="utf-8") as database:
        found = {}
        for entry in json.load(database):
            file = pathlib.Path(entry["directory"], entry["file"])
            if any(folder in file.parents for folder in FOLDERS):
                found[file] = shlex.split(entry["command"])
    return sorted(found.items())


def preprocessed(command):
    """What the compiler sees of a file, comments included."""
    if pathlib.Path(command[0]).name == "ccache":
        command = command[1:]
    kept = []
    skip = False
    for word in command:
        if not skip and word not in ("-o", "-c"):
            kept.append(word)
        skip = word == "-o"
    return subprocess.run(kept + ["-E", "-P", "-C"], check=True, capture_output=True, cwd=BUILD).stdout


def complaints(file, command, rules):
    """What clang-tidy says of one file; empty when it is clean."""
    mark = CLEAN / hashlib.sha256(rules + preprocessed(command)).hexdigest()
    if mark.exists():
        return ""
    run = subprocess.run(["clang-tidy", "-p", str(BUILD), "--quiet", str(file)], capture_output=True, text=True, check=False)
    if run.returncode == 0:
        mark.touch()
        return ""
    return run.stdout or run.stderr


def main():
    CLEAN.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], check=True, capture_output=True).stdout
    rules = version + (ROOT / ".clang-tidy").read_bytes()
    sources = library_sources()
    if not sources:
        sys.exit(f"tidy: {BUILD}/compile_commands.json names no source of the library")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda source: complaints(*source, rules), sources))
    print("\n".join(text for text in found if text), end="")
    sys.exit(1 if any(found) else 0)


if __name__ == "__main__":
    main()
