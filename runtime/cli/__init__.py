"""The command line. It alone reads the environment; everything below it is handed values."""


def main() -> None:
    """Run the command that the process was started with, and exit with its status.

    0 is success, 1 a typed error, 2 wrong usage, 3 problems found by `check`, and 130 Ctrl-C.
    """
    from reverie.cli.app import app

    app()
