"""The workflows of Airflow: its scheduler reads this file."""

from airflow.sdk import DAG, task


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@task
def fib() -> int:
    return fibonacci(10)


def chained(name: str, count: int) -> DAG:
    with DAG(name, schedule=None, is_paused_upon_creation=False) as dag:
        before = fib()
        for _ in range(count - 1):
            after = fib()
            before >> after
            before = after
    return dag


FIRST = chained("first", 1)
FORTY = chained("forty", 40)
