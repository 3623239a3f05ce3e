"""Two commands that only the tests of the lazy group import."""

import click


@click.command()
def clock() -> None:
    """Tell the time."""
    click.echo("noon")


@click.command()
def clear() -> None:
    """Clear it."""
