"""Make .venv from requirements.lock: what `make env` runs, and every other target first.

Needs nothing but Python and pip, so it is written to at least *parse* on very old Pythons, which
then get a sentence instead of a traceback. A finished environment carries a stamp that names what
it was built from. The stamp is taken away first and put back last, so an interrupted set-up is
started over.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys

OLDEST = (3, 11)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
STAMP = os.path.join(VENV, "ready")
LOCK = os.path.join(ROOT, "requirements.lock")
LOG = os.path.join(ROOT, "build", "env.log")


class SetupError(Exception):
    """What went wrong, as one sentence for the person at the terminal."""


def main():
    try:
        check_python(sys.version_info, sys.executable)
        wanted = fingerprint()
        if is_ready(wanted):
            os.utime(STAMP, None)  # make compares times: nothing changed but a date
            say(".venv is up to date")
            return 0
        build(wanted)
    except SetupError as error:
        sys.stderr.write("make env: {}\n".format(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted; the next make starts .venv over")
        return 130
    return 0


def check_python(version, executable):
    if tuple(version[:2]) < OLDEST:
        raise SetupError(
            "{} is Python {}.{}, and {}.{} or newer is needed; name another with"
            " 'make PYTHON=/path/to/python3'.".format(executable, *(tuple(version[:2]) + OLDEST))
        )


def fingerprint():
    """What the environment depends on: the lock, the Python, and the folder, which it refers to.

    And what `pyproject.toml` says: the command line is installed by it.
    """
    digest = hashlib.sha256((sys.version + ROOT).encode())
    for path in (LOCK, os.path.join(ROOT, "pyproject.toml")):
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def is_ready(wanted):
    try:
        with open(STAMP) as file:
            return file.read().strip() == wanted
    except (IOError, OSError):
        return False


def build(wanted):
    if os.path.exists(VENV):
        say("starting .venv over: it is unfinished, or made for another lock, Python or folder")
        if os.path.exists(STAMP):
            os.remove(STAMP)
        shutil.rmtree(VENV)
    if not os.path.isdir(os.path.dirname(LOG)):
        os.makedirs(os.path.dirname(LOG))
    with open(LOG, "w") as log:
        say("making .venv with Python {}.{}.{}".format(*sys.version_info[:3]))
        if run(log, [sys.executable, "-m", "venv", VENV]) != 0:
            raise SetupError(
                "Python could not make a virtual environment (on Debian, install python3-venv);"
                " see build/env.log."
            )
        python = os.path.join(VENV, "bin", "python")
        pip = [python, "-m", "pip", "--disable-pip-version-check"]
        say("installing the packages of requirements.lock (half a minute, or two without uv)")
        if not (install_with_uv(log, pip) or install(log, pip + ["install"])):
            raise SetupError(
                "the packages could not be downloaded: is there a network? See build/env.log."
            )
        here = ["install", "--no-deps", "--no-build-isolation", "--editable", ROOT]
        if run(log, pip + here) != 0:
            raise SetupError("the package itself could not be installed; see build/env.log.")
    with open(STAMP, "w") as file:
        file.write(wanted + "\n")
    say("the environment is ready")


def install_with_uv(log, pip):
    """The fast path: uv, itself from the lock, installs the rest."""
    with open(LOCK) as file:
        pinned = re.search(r"^uv==.*(\n +--hash.*)+", file.read(), re.MULTILINE)
    if pinned is None:
        return False
    only_uv = os.path.join(VENV, "uv.lock")
    with open(only_uv, "w") as file:
        file.write(pinned.group(0) + "\n")
    if run(log, pip + ["install", "--require-hashes", "-r", only_uv]) != 0:
        return False
    uv = os.path.join(VENV, "bin", "uv")
    return install(log, [uv, "pip", "install", "--python", os.path.join(VENV, "bin", "python")])


def install(log, installer):
    return run(log, installer + ["--require-hashes", "-r", LOCK]) == 0


def run(log, command):
    """Run a command with its output in the log; its exit code."""
    log.write("$ {}\n".format(" ".join(command)))
    log.flush()
    return subprocess.call(command, stdout=log, stderr=subprocess.STDOUT)


def say(text):
    sys.stderr.write("make env: {}\n".format(text))
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
