"""Programs of pages, run as they are printed, in projects that are kept in build/clients: a second run fetches nothing."""
import os
import re
import subprocess
import time
import unittest
from pathlib import Path

import process

HERE = Path(__file__).resolve().parent
PROJECTS = process.PROGRAM.parent / "clients"
LIMIT_S = 600  # a registry, and a compiler beside other tests
PRINTS = re.compile(r"^\s*(print\(|console\.log\(|System\.out\.println\(|fmt\.Println\(|echo |println!\(|Console\.WriteLine\()")


class Program:
    """A block of a page. What it prints is in the comments behind its lines that print, and below these."""

    def __init__(self, page, language, code):
        self.page, self.language, self.code = page, language, code

    def promised(self):
        mark = "#" if self.language == "python" else "//"
        found, column = [], None
        for line in self.code.splitlines():
            begin = line.rfind(f" {mark} ")
            if PRINTS.match(line):
                assert begin >= 0, f"{self.page.name} does not say what this prints: {line.strip()}"
                found.append(line[begin + len(mark) + 2:].strip())
                column = begin
            elif column and line.strip().startswith(mark) and len(line) - len(line.split(mark, 1)[1].lstrip()) > column:
                found.append(line.split(mark, 1)[1].strip())
            else:
                column = None
        return found

    def with_port(self, port):
        assert "6379" in self.code, f"{self.page.name}: no port in the program"
        return self.code.replace("6379", str(port))


def blocks(page):
    return re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def programs(name, language):
    """Those of a page, of which there is one at least."""
    page = process.ROOT / name
    found = [Program(page, language, code) for has, code in blocks(page) if has == language]
    assert found, f"{name} has no program in {language}"
    return found


def commands(page):
    """The lines of the page's blocks of commands."""
    return "".join(code for language, code in blocks(page) if language == "sh").splitlines()


def ask(words, directory, environment=None):
    """What a program prints. What it says of itself is shown if it fails."""
    done = subprocess.run([str(word) for word in words], cwd=directory, env={**os.environ, **(environment or {})},
                          timeout=LIMIT_S, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout}\n{done.stderr}"
    return done.stdout.splitlines()


def fetch(words, directory):
    """A registry may be busy: three tries."""
    for _ in range(2):
        try:
            return ask(words, directory)
        except AssertionError:
            time.sleep(5)
    return ask(words, directory)


def project(name):
    directory = PROJECTS / name
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def write(directory, name, text):
    """Where nothing has changed, nothing is newer."""
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return path


def needs(program, version):
    """Left out where the machine's program is older."""
    try:
        told = ask([program, "version" if program == "go" else "--version"], HERE)[0]
        there = tuple(map(int, re.search(r"(\d+)\.(\d+)", told).groups()))
    except FileNotFoundError:
        there = ()
    if there < version:
        raise unittest.SkipTest(f"not run: needs {program} {'.'.join(map(str, version))}")
