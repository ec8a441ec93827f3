"""A collection on the command line, in files and pipes: `python -m ldpcash`::

    server   plan      what to collect, how privately   ->  a plan, which is public
    server   tickets   plan, how many                   ->  a state, which is secret; tickets
    client   report    plan, ticket, item               ->  report
    server   collect   state, reports                   ->  the state
    server   merge     states of several servers        ->  one state
    server   table     state                            ->  items and their frequencies

Plans are JSON, reports bytes, and items and tickets a line each (`lines`). A state is what
`Collector.save` writes, whole or not at all, so nothing that was saved is lost by a kill. Real
reports take the randomness of the operating system, and no option changes that.
"""

from __future__ import annotations

import argparse
import csv
import fcntl
import io
import json
import math
import os
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, nullcontext, suppress
from io import BufferedReader, BufferedWriter
from itertools import islice
from typing import Any, NoReturn

from ldpcash.base.arrays import batches
from ldpcash.base.checks import real_number, whole_number
from ldpcash.base.workers import Processes
from ldpcash.histogram.collector import Collector
from ldpcash.histogram.lines import alphabet_of, items_of, ticket_lines, tickets_of
from ldpcash.histogram.mixing import MOST_BITS
from ldpcash.histogram.packing import Packing
from ldpcash.histogram.plan import Plan
from ldpcash.histogram.streams import Line, parts
from ldpcash.histogram.tickets import MOST_TICKETS

_PIECE = 2**21  # bytes of reports that are written at once
_TICKETS = 2**16  # that are printed at once
_SEED_BITS = 53  # more would not survive a tool that reads numbers of JSON as floating point

_REJECTED = {
    "damaged": "the checksum does not fit",
    "dishonest": "what no honest client sends",
    "foreign": "no report",
    "parameters": "made with another plan",
    "replay": "the ticket was used before",
    "size": "cut off",
    "ticket": "the ticket was not issued here",
    "version": "made by another version",
}


def main(arguments: Sequence[str], version: str = "") -> int:
    """Carry out a command, and say what is wrong in one line. Its exit code, 0 if all is well.

    Args:
        arguments: what stands on the command line behind the program's name.
        version: what ``--version`` tells.

    >>> main(["--version"], "1.2.3")
    ldpcash 1.2.3
    0
    """
    try:
        with suppress(SystemExit):  # after --help and --version
            args = _parser(version).parse_args(arguments)
            args.carry_out(args)
        sys.stdout.flush()
        code = 0
    except BrokenPipeError:  # whoever reads this has seen enough
        code = 141
    except KeyboardInterrupt as stop:
        _say(f"interrupted{stop}")
        code = 130
    except (ValueError, OSError, BrokenExecutor) as error:
        _say(_in_one_line(error))
        code = 2
    try:
        sys.stdout.flush()
    except OSError:  # nor could Python write the rest when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


# The commands


def _plan(args: argparse.Namespace) -> None:
    clients, k, packing = whole_number("clients", args.clients, 1), args.bits, None
    if args.alphabet is not None or args.text:
        alphabet = None if args.text else alphabet_of(args.alphabet)
        if k is None:
            k = whole_number("length", args.length, 1) * Packing(MOST_BITS, alphabet).width
        packing = Packing(whole_number("k", k, 1, MOST_BITS), alphabet, args.cut)
    elif args.cut or k is None:
        raise ValueError("--length and --cut are about text: they need --alphabet or --text")
    seed = secrets.randbits(_SEED_BITS) if args.hash_seed is None else args.hash_seed
    options: dict[str, Any] = {"fdr": args.fdr, "hash_seed": seed, "packing": packing}
    of_clients = {"protocol": args.protocol, "delta": args.delta, "empty": args.empty}
    plan = Plan.choose(clients, k, args.epsilon, **of_clients, **options)
    with _output(args.output) as file:
        file.write(plan.to_json().encode() + b"\n")
    share = plan.smallest(clients)
    told = f"an item that {100 * share:.3g} % of {clients} clients hold is found half of the time"
    if share >= 1:
        told = f"{clients} clients are too few for any item to be found"
    _say(f"{told}; a report has {plan.report_size} bytes")


def _tickets(args: argparse.Namespace) -> None:
    count = whole_number("count", args.count, 1, MOST_TICKETS)
    new = args.plan is not None or args.beside is not None
    if args.first is not None and not new:
        raise ValueError("--first is about a new state: it needs --plan or --beside")
    with _alone(args.state, new) as state:
        collector = _issuing(args, state)
        tickets = collector.issue(count)
        if args.beside is not None:
            _add(Collector.load(args.beside), collector, args.beside)  # an error now, not later
        collector.save(state)  # before any ticket is out: one that is lost does no harm
    with _output(args.output) as file:
        for part in batches(count, _TICKETS):
            file.write(ticket_lines(tickets[part]))


def _issuing(args: argparse.Namespace, state: str) -> Collector:
    """The collector that issues tickets: a new one, or that of the state."""
    if args.plan is None and args.beside is None:
        return Collector.load(state)
    if args.beside is None:
        return Collector(_read_plan(args.plan), first=args.first or 0)
    if args.first is None:
        raise ValueError("--beside needs --first: no two states may issue the same numbers")
    other = Collector.load(args.beside)
    return Collector(other.plan, other.tickets.key, args.first)


def _report(args: argparse.Namespace) -> None:
    if [args.plan, args.tickets, args.items].count("-") > 1:
        raise ValueError("only one of PLAN, TICKETS and ITEMS can come from stdin")
    if args.output == "-" and sys.stdout.isatty():
        raise ValueError("reports are bytes: send them to a file or a pipe")
    plan = _read_plan(args.plan)
    if args.items == "-" and sys.stdin.isatty():
        _say("type items, one a line, and Ctrl-D in the end")
    with _input(args.items) as file:
        lines = file.read().splitlines()
    bits, holds = items_of(plan, lines)
    with _input(args.tickets) as file:
        tickets = tickets_of(islice(file, len(lines)))
    if len(tickets) < len(lines):
        raise ValueError(f"{len(lines)} items and only {len(tickets)} tickets: needs one for each")
    # Nothing is out before all items are known to be good: who tries again reports them once.
    with _output(args.output) as file:
        for part in batches(len(lines), _PIECE // plan.report_size):
            mine = tickets[part]
            file.write(plan.to_bytes(mine, plan.reports(bits[part], holds[part], mine)))


def _collect(args: argparse.Namespace) -> None:
    names = args.reports or ["-"]
    if "-" in names and sys.stdin.isatty():
        raise ValueError("no reports: name a file, or send them into a pipe")
    workers = whole_number("workers", args.workers, 1)
    between = real_number("save-every", args.save_every, 0)
    sizes = [_size(name) for name in names]
    with _alone(args.state) as state:
        collector = Collector.load(state)
        clients, rejected = collector.clients, collector.rejected.copy()
        line = Line(collector.plan.report_size, 0 if 0 in sizes else sum(sizes))
        saved = time.monotonic()
        try:
            with Processes(workers) if workers > 1 else nullcontext() as pool:
                for name in names:
                    with _input(name) as file:
                        for part in parts(file, collector.plan.form, between):
                            collector.receive_stream([part], pool)
                            line.more(len(part))
                            if time.monotonic() >= saved + between:
                                collector.save(state)
                                saved = time.monotonic()
            collector.save(state)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("; run it again with the same reports") from None
        finally:
            line.close()
    new = collector.rejected - rejected
    print(f"taken in: {collector.clients - clients}")
    print(f"rejected: {new.total()}")
    for reason, count in sorted(new.items()):
        print(f"  {reason}: {count} ({_REJECTED.get(reason, 'of no use')})")
    _print_state(collector)


def _merge(args: argparse.Namespace) -> None:
    with _alone(args.output, new=True) as state:
        total = Collector.load(args.states[0])
        for path in args.states[1:]:
            total = _add(total, Collector.load(path), path)
        total.save(state)
    _print_state(total)


def _table(args: argparse.Namespace) -> None:
    collector = Collector.load(args.state)
    entries, clients = collector.histogram(), collector.clients
    error = collector.plan.channels.noise / math.sqrt(clients)
    digits = max(0, 1 - math.floor(math.log10(error)))  # two of the standard error
    names = ("item", "frequency", "low", "high")
    rows = [
        [item if isinstance(item, str) else "".join(map(str, item))]
        + [f"{number:z.{digits}f}" for number in numbers]
        for item, *numbers in entries
    ]
    text = io.StringIO()
    if args.json:
        items = [dict(zip(names, [row[0], *map(float, row[1:])], strict=True)) for row in rows]
        about = {"clients": clients, "rejected": dict(collector.rejected), "items": items}
        text.write(json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    else:
        csv.writer(text, lineterminator="\n").writerows([names, *rows])
    with _output(args.output) as file:
        file.write(text.getvalue().encode())
    if not rows:
        share = collector.plan.smallest(clients)
        told = f"that takes about {100 * share:.3g} % of them" if share < 1 else "they are too few"
        _say(f"no item stands out of the {clients} reports: {told}")


# What they share


def _read_plan(path: str) -> Plan:
    with _input(path) as file:
        try:
            return Plan.from_json(file.read().decode())
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def _input(path: str) -> BufferedReader:
    if path == "-":
        return open(sys.stdin.fileno(), "rb", closefd=False)
    return open(path, "rb")


def _output(path: str) -> BufferedWriter:
    if path == "-":  # not what Python has opened, which may be unbuffered and so write a part
        return open(sys.stdout.fileno(), "wb", closefd=False)
    return open(path, "wb")


def _size(path: str) -> int:
    """Bytes of a file; 0 if that does not tell how many will come."""
    about = os.fstat(sys.stdin.fileno()) if path == "-" else os.stat(path)
    return about.st_size if stat.S_ISREG(about.st_mode) else 0


@contextmanager
def _alone(path: str, new: bool = False) -> Iterator[str]:
    """A state that nobody else changes meanwhile: what one of both saves would be lost."""
    state = os.path.realpath(path)
    folder, name = os.path.split(state)
    lock = os.path.join(folder, f".{name}.lock")
    os.stat(folder if new else path)  # before there is a lock of nothing
    with open(lock, "wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until the file is closed, or a kill
            mine = os.path.samestat(os.fstat(file.fileno()), os.stat(lock))
        except (BlockingIOError, FileNotFoundError):
            mine = False
        if not mine:
            raise ValueError(f"{path}: another command is changing it")
        try:
            if new:
                _not_there(path)
            yield state
        finally:
            os.unlink(lock)


def _not_there(path: str) -> None:
    if os.path.exists(path):
        raise ValueError(f"{path}: is there already, and a new state needs a name of its own")


def _add(one: Collector, other: Collector, path: str) -> Collector:
    try:
        return one + other
    except ValueError as error:
        raise ValueError(f"{path}: {str(error).removeprefix('other = ')}") from None


def _print_state(collector: Collector) -> None:
    issued = sum(map(len, collector.tickets.numbers))
    print(f"in the state: {collector.clients} reports, of {issued} tickets")


def _say(message: str) -> None:
    print(f"ldpcash: {message}", file=sys.stderr)


def _in_one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split())


# The arguments

_ABOUT = """\
Find what is frequent among the items of many clients, from one private report of each.

  ldpcash plan --clients 10000 --epsilon 2 --length 8 --alphabet A-Z > plan.json
  ldpcash tickets state 10000 --plan plan.json > tickets   # server; state is secret
  ldpcash report plan.json tickets < items > reports       # clients, a ticket each
  ldpcash collect state reports                            # server
  ldpcash table state
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message}; see {self.prog} --help")


def _number(text: str) -> float:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number")


def _parser(version: str) -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = _Parser("ldpcash", description=_ABOUT, formatter_class=raw, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"ldpcash {version}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(carry_out: Callable[[argparse.Namespace], None], what: str, more: str) -> Any:
        made = commands.add_parser(
            carry_out.__name__.strip("_"),
            help=what,
            description=f"{what[0].upper()}{what[1:]}. {more}",
            allow_abbrev=False,
        )
        made.set_defaults(carry_out=carry_out)
        return made

    def number(of: Any, name: str, text: str, default: float | None = None, **more: Any) -> None:
        shown = "" if default is None else f" ({default})"
        of.add_argument(name, type=_number, default=default, help=text + shown, **more)

    def output(of: Any) -> None:
        of.add_argument("--output", default="-", metavar="FILE", help="instead of stdout")

    more = "A plan is public: clients and server need the same. The rest of it is set by rule."
    of = command(_plan, "make the plan of a collection", more)
    number(of, "--clients", "how many, about", metavar="N", required=True)
    number(
        of, "--epsilon", "privacy of a report: the smaller, the more", metavar="E", required=True
    )
    size = of.add_mutually_exclusive_group(required=True)
    number(size, "--bits", "bits of an item", metavar="K")
    number(size, "--length", "letters of the longest item; bytes, with --text", metavar="L")
    kind = of.add_mutually_exclusive_group()
    text = "items are words of these letters, such as A-Z or a-z0-9_"
    kind.add_argument("--alphabet", metavar="LETTERS", help=text)
    text = "items are any text, as UTF-8; without it and --alphabet, K zeros and ones"
    kind.add_argument("--text", action="store_true", help=text)
    of.add_argument("--cut", action="store_true", help="cut items that are too long")
    number(of, "--empty", "share of clients that hold nothing, about", 0, metavar="S")
    text = "Prot needs less noise and fewer bytes (Prot)"
    of.add_argument("--protocol", choices=("Prot", "Cash"), default="Prot", help=text)
    number(of, "--delta", "of Cash (1e-4)", metavar="D")
    number(of, "--fdr", "share of false items in the table, at most, on average", 0.05, metavar="S")
    text = "public randomness, to be chosen by nobody; random unless given"
    number(of, "--hash-seed", text, metavar="NUMBER")
    output(of)

    more = (
        "A client needs a ticket to report, and each counts once. The state is the server's file:"
        " it holds a secret key and, later, sums of reports. Without --plan and --beside, more"
        " tickets of a state that exists."
    )
    of = command(_tickets, "issue tickets, one a line", more)
    of.add_argument("state", metavar="STATE", help="the server's file")
    number(of, "count", "how many", metavar="COUNT")
    new = of.add_mutually_exclusive_group()
    new.add_argument("--plan", metavar="PLAN", help="make a new state, of a new collection")
    text = "make a new state, of the same collection as that one, for another server"
    new.add_argument("--beside", metavar="STATE", help=text)
    text = (
        "of the new state's tickets, with room for all that the other one will ever issue, such as"
        " 1000000: states that issued the same numbers cannot be merged"
    )
    number(of, "--first", text, metavar="NUMBER")
    output(of)

    more = (
        "Each line of ITEMS is of a client, with the ticket in the same line of TICKETS; an empty"
        " one is of a client that holds nothing, and makes a report too. If anything is wrong with"
        " any line, no report is made. Report an item once: two reports say twice as much of it."
    )
    of = command(_report, "make reports of items", more)
    of.add_argument("plan", metavar="PLAN", help="the plan")
    of.add_argument("tickets", metavar="TICKETS", help="one for each item: the first ones are used")
    text = "one a line; stdin unless given"
    of.add_argument("items", metavar="ITEMS", nargs="?", default="-", help=text)
    output(of)

    more = (
        "What cannot be used is left out and counted; what is no report of this plan counts once,"
        " however long it is. If this was interrupted, run it again"
        " with the same reports: those that were saved are not counted twice, but refused, as their"
        " tickets are used."
    )
    of = command(_collect, "take reports into a state", more)
    of.add_argument("state", metavar="STATE", help="the server's file")
    of.add_argument("reports", metavar="REPORTS", nargs="*", help="files; stdin unless given")
    number(of, "--workers", "processes; several help if reports are large", 1, metavar="W")
    number(of, "--save-every", "and in the end", 10, metavar="SECONDS")

    more = "They have to be of one collection: see tickets --beside."
    of = command(_merge, "add up the states of several servers", more)
    of.add_argument("states", metavar="STATE", nargs="+", help="the servers' files")
    of.add_argument("--output", required=True, metavar="STATE", help="a new file")

    more = "Each with its estimated frequency among all clients, and a 95 % interval of it."
    of = command(_table, "show the items that stand out", more)
    of.add_argument("state", metavar="STATE", help="the server's file")
    of.add_argument("--json", action="store_true", help="instead of CSV")
    output(of)
    return parser
