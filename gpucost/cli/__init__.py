"""The command line: a table of commands, each loaded only when it runs, and the one boundary for errors."""

import gc
import io
import os
import signal
import sys
import warnings
from importlib import import_module
from types import FrameType

import click

from gpucost import __version__
from gpucost.cli.messages import printable, say
from gpucost.errors import GpuCostError, UsageError, nearest, shortened
from gpucost.gate import beside

# A command builds what it needs and ends: a search for garbage cycles after every 700 objects only delays it.
_COLLECT_AFTER = (100_000, 20, 50)

# command -> (module with an attribute of its name, or `command`, or `command_of`, which makes any question's; its help)
_LISTED = beside(__file__, "commands")[1:]  # a subcommand of note is listed too, without a module
COMMANDS = {name: (f"gpucost.cli.{module}", text) for name, _, module, text in _LISTED if module}
# The old name of a command -> its group and its name there, for one more release.
MOVED = {name: (group, command) for name, group, command in beside(__file__, "moved")[1:]}

_INVOKED = "gpucost.asked"  # where a context keeps the command found, and the words behind it


class _LazyGroup(click.Group):
    """A group that knows its commands' names and help without importing their modules."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of their table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command."""
        if cmd_name in MOVED:
            group, name = MOVED[cmd_name]
            parent = self.get_command(ctx, group)
            assert isinstance(parent, click.Group)
            return parent.get_command(ctx, name)
        if cmd_name not in COMMANDS:
            return None
        module = import_module(COMMANDS[cmd_name][0])
        if hasattr(module, "command_of"):  # of questions, which are built from their signatures
            loaded = module.command_of(cmd_name)
        else:  # three forms: several commands of one module, a single one, or a click group
            loaded = getattr(module, cmd_name, None) or module.command
        assert isinstance(loaded, click.Command)
        return loaded

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was asked for; an unknown one gets the nearest names."""
        try:
            resolved = super().resolve_command(ctx, args)
            ctx.meta[_INVOKED] = (*resolved[:2], tuple(resolved[2]))  # the parser eats its list
            if args[0] in MOVED:
                say(f"`gpucost {args[0]}` is now `gpucost {' '.join(MOVED[args[0]])}`; the old name goes with 0.2.")
            return resolved
        except click.UsageError as error:
            near = nearest(args[0], COMMANDS, 2, 0.5)
            if near and "Did you mean" not in error.message:
                hint = f" Did you mean {' or '.join(map(repr, near))}?"
                raise click.UsageError(error.message + hint, ctx) from None
            raise

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; an error over what a setting gave says which file or variable it stands in."""
        try:
            return super().invoke(ctx)
        except (GpuCostError, click.BadParameter) as error:
            # the settings are read only once an error asks for them
            from gpucost.cli.options import speaker_of

            name, command, arguments = ctx.meta.get(_INVOKED, (None, None, ()))
            if command and (speaker := speaker_of(error, command, arguments, name)):
                if isinstance(error, click.BadParameter):
                    message = f"{speaker}: {error.message}"
                    raise click.BadParameter(message, error.ctx, error.param, error.param_hint) from None
                error.args = (f"{speaker}: {error}",)
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in their groups, from their table alone."""
        width = max(len(name) for name, *_ in _LISTED)
        for group in dict.fromkeys(group for _, group, *_ in _LISTED):
            with formatter.section(group):
                formatter.write_dl([(name.ljust(width), text) for name, title, _, text in _LISTED if title == group])
        formatter.write_paragraph()
        formatter.write_text("Each command: gpucost COMMAND --help")


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gpucost")
@click.option("--debug", is_flag=True, help="Show a traceback when something fails.")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """What will it cost to train or serve this model, on whose GPUs, and should we rent, reserve or buy?"""
    name = ctx.invoked_subcommand
    if name and (command := cli.get_command(ctx, name)):
        from gpucost.cli.options import defaults_of

        # click takes what settings say where the command line says nothing
        ctx.default_map = {name: defaults_of(command, name)}


def main() -> None:
    """Run the command line; a GpuCostError becomes one sentence on stderr and its exit code."""
    debug = "--debug" in sys.argv
    # a closed stdin, stdout or stderr leads nowhere
    if None in (sys.stdin, sys.stdout, sys.stderr):
        # no other file may take the number of a closed stream, here or in a child
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest that is free
            os.set_inheritable(number, True)
        os.close(number)
        for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
            if getattr(sys, name) is None:
                setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", errors="backslashreplace"))
    # every sign is written: as UTF-8 into pipes and files, and on a terminal of fewer signs as an escape
    for stream in (sys.stdout, sys.stderr):
        encoding = (getattr(stream, "encoding", None) or "").lower().replace("-", "").replace("_", "")
        if encoding != "utf8" and hasattr(stream, "reconfigure"):
            if stream.isatty():
                stream.reconfigure(errors="backslashreplace")
            else:
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    warnings.showwarning = lambda message, *_: say(str(message))
    gc.set_threshold(*_COLLECT_AFTER)
    try:
        # what a shell that completes words does not set: click takes it as it comes
        if request := os.environ.get("_GPUCOST_COMPLETE"):
            shell, _, step = request.partition("_")
            if shell not in ("bash", "zsh", "fish") or step not in ("source", "complete"):
                raise UsageError(
                    f"_GPUCOST_COMPLETE: expected bash_source, zsh_source or fish_source, not {shortened(request)!r}."
                )
            # the words so far, and which of them is typed; fish hands the line over whole, and no number
            cursor = "0" if shell == "fish" else os.environ.get("COMP_CWORD", "")
            if step == "complete" and ("COMP_WORDS" not in os.environ or not cursor.isdecimal()):
                raise UsageError(
                    f"_GPUCOST_COMPLETE={request}: COMP_WORDS and COMP_CWORD say what is to be completed; one is"
                    " missing."
                )
        code = cli.main(standalone_mode=False, prog_name="gpucost")
        sys.stdout.flush()  # a full disk or a closed pipe is found here, not when Python ends
        sys.exit(code if isinstance(code, int) else 0)
    except GpuCostError as error:
        _trace(debug)
        say(str(error))
        sys.exit(error.exit_code)
    except click.exceptions.Abort:  # Ctrl-C at a prompt
        say("interrupted")
        sys.exit(130)
    except KeyboardInterrupt:
        sys.exit(130)
    # click's own message, cut and made harmless as ours are
    except click.ClickException as error:
        text = io.StringIO()
        error.show(text)
        click.echo(printable(shortened(text.getvalue())), err=True, nl=False)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # nobody reads any more: what Python would flush at its end goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:  # a full disk, a file that vanished: the user's to mend
        _trace(debug)
        file_text = f" {error.filename}" if error.filename else ""
        say(shortened(f"cannot read or write{file_text}: {error.strerror or error}."))
        sys.exit(2)
    except Exception as error:
        # an interrupt while a library of C works comes out as its own kind of error
        if _signal_received or str(error) == "Query interrupted":
            sys.exit(128 + (_signal_received or signal.SIGINT))  # as a shell says by which signal a program ended
        _trace(debug)
        say(f"internal error: {type(error).__name__}: {error}. Run again with --debug and report it.")
        sys.exit(1)


def _trace(debug: bool) -> None:
    """Show where an error comes from; the sentence and the exit code stay what they are."""
    if debug:
        import traceback

        click.echo("\n".join(map(printable, traceback.format_exc().splitlines())), err=True)


_signal_received = 0  # by which the program is told to end


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _signal_received
    _signal_received = number
    signal.default_int_handler(number, frame)


def _end(number: int, frame: FrameType | None) -> None:
    global _signal_received
    _signal_received = number
    signal.signal(number, signal.SIG_DFL)  # a second one does not wait
    sys.exit(128 + number)  # so that temporary files go along, as they do at an interrupt


def run() -> None:
    """Run the command line as a program: the process ends at once, for taking everything apart first takes longer."""
    import socket
    import threading

    # what ends a program from outside takes its temporary files along, as an interrupt does
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup has it ignored
            signal.signal(number, _end)

    # a handler of ours runs only once the database's work is over: this thread ends that work as soon as a signal comes
    heard, woken = socket.socketpair()
    woken.setblocking(False)
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)

    def listen() -> None:
        while heard.recv(1):
            if loader := sys.modules.get("gpucost.catalog.loader"):
                loader.interrupt()

    threading.Thread(target=listen, daemon=True).start()
    try:
        if callable(signal.getsignal(signal.SIGINT)):  # until now it ended the program at once: nothing was begun
            signal.signal(signal.SIGINT, _interrupt)
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:  # a second one, or one before anything was begun
        code = 130
    try:
        # os._exit writes out nothing
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # nobody reads any more
        code = code or 1
    os._exit(code)
