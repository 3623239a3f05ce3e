"""Luigi with its local scheduler: a finished task is a file, which nothing syncs."""

from typing import Any

import luigi

from bench.peers.programs.telling import Order, asked, fibonacci, main

ORDER = asked()


class Link(luigi.Task):
    """A task that waits for the one before it."""

    chain = luigi.IntParameter()
    number = luigi.IntParameter()
    fib = luigi.BoolParameter(default=False)

    def requires(self) -> Any:
        if self.number == 0:
            return []
        return Link(chain=self.chain, number=self.number - 1, fib=self.fib)

    def output(self) -> Any:
        return luigi.LocalTarget(str(ORDER.folder / f"{self.chain}-{self.number}"))

    def run(self) -> None:
        if self.fib:
            fibonacci(10)
        ORDER.one()
        with self.output().open("w") as file:
            file.write("done")


class All(luigi.WrapperTask):
    """So many chains of one length."""

    chains = luigi.IntParameter()
    length = luigi.IntParameter()

    def requires(self) -> Any:
        return [Link(chain=n, number=self.length - 1) for n in range(1, self.chains + 1)]


def build(*tasks: Any) -> None:
    assert luigi.build(list(tasks), local_scheduler=True, log_level="CRITICAL")


def timed(order: Order, task: Any) -> None:
    build(Link(chain=0, number=0))
    order.begin()
    build(task)
    order.end()


def first(order: Order) -> None:
    build(Link(chain=0, number=0))
    order.end()


if __name__ == "__main__":
    main(
        {
            "W1": lambda order: timed(order, Link(chain=1, number=order.count - 1)),
            "W2": lambda order: timed(order, All(chains=order.count, length=1)),
            "W3": lambda order: timed(order, All(chains=order.count, length=5)),
            "W4": lambda order: timed(order, Link(chain=1, number=order.count - 1, fib=True)),
            "W5": first,
            "W7": lambda order: timed(order, Link(chain=1, number=order.count - 1)),
        },
        ORDER,
    )
