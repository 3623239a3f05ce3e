"""Airflow standalone: a run is triggered by its command, and its database says how it went."""

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from bench.peers.programs.telling import Order, asked, main

AIRFLOW = str(Path(sys.executable).with_name("airflow"))


def told(statement: str, dag: str) -> int:
    """A number from its database; 0 where its tables are not there yet."""
    address = f"file:{os.environ['AIRFLOW_HOME']}/airflow.db?mode=ro"
    try:
        connection = sqlite3.connect(address, uri=True, timeout=10)
        try:
            return int(connection.execute(statement, (dag,)).fetchone()[0])
        finally:
            connection.close()
    except sqlite3.OperationalError:
        return 0


def run(order: Order, dag: str) -> None:
    """Seconds from the first task that began to the last that ended, by polling."""
    while not told("select count(*) from serialized_dag where dag_id = ?", dag):
        time.sleep(0.2)
    subprocess.run([AIRFLOW, "dags", "trigger", dag], check=True, stdout=subprocess.DEVNULL)
    order.begin()
    ended = "select count(*) from dag_run where dag_id = ? and state = 'success'"
    tasks = "select count(*) from task_instance where dag_id = ? and state = 'success'"
    while not told(ended, dag):
        order.done = told(tasks, dag)
        time.sleep(0.05)
    order.end()


if __name__ == "__main__":
    dags = {"W4": "forty", "W5": "first"}
    main({work: lambda order: run(order, dags[order.work]) for work in dags}, asked())
