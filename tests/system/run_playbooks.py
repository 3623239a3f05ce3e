"""The playbooks that the tests of `noetl run` share."""

HEAD = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: sample, path: tests/sample}
"""

GATED = (
    HEAD
    + """
workload: {gate: "", ledger: ""}
workflow:
  - step: first
    tool:
      - note:
          kind: python
          args: {ledger: "{{ workload.ledger }}"}
          code: |
            open(ledger, "a").write("first\\n")
            result = 1
    next: {arcs: [{step: gated}]}
  - step: gated
    tool:
      - before:
          kind: python
          args: {ledger: "{{ workload.ledger }}"}
          code: |
            open(ledger, "a").write("before\\n")
            result = 2
      - wait:
          kind: python
          args: {gate: "{{ workload.gate }}", ledger: "{{ workload.ledger }}"}
          code: |
            print("at the gate", flush=True)
            open(gate).read()
            open(ledger, "a").write("through\\n")
            result = 3
    next: {arcs: [{step: last}]}
  - step: last
    tool:
      - note:
          kind: noop
          spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {passed: true}}}}]}}
"""
)
"""It stands at a gate, a pipe that the test opens, and writes down what it did."""

BRANCHES = (
    HEAD
    + """
workload: {name: world}
workflow:
  - step: start
    next:
      spec: {mode: inclusive}
      arcs: [{step: left}, {step: right}]
  - step: left
    tool:
      - speak:
          kind: python
          args: {name: "{{ workload.name }}"}
          code: |
            print("hello", name)
            result = {"said": name}
  - step: right
    loop: {in: [1, 2, 3], iterator: n, spec: {mode: parallel, policy: {reduce: {total: sum}}}}
    tool:
      - add:
          kind: noop
          spec: {policy: {rules: [{else: {then: {set_ctx: {total: "{{ iter.n }}"}}}}]}}
"""
)

FAULTS: dict[str, tuple[str, str, str]] = {
    "undefined-variable": (
        "template",
        "'ctx.nowhere' is undefined",
        """
  - step: start
    tool:
      - a: {kind: python, args: {x: "{{ ctx.nowhere }}"}, code: "result = x"}
""",
    ),
    "loop-over-a-number": (
        "loop",
        "must evaluate to a list, got int: 5",
        """
  - step: start
    loop: {in: "{{ 2 + 3 }}", iterator: x}
    tool: [{a: {kind: noop}}]
""",
    ),
    "endless-jump": (
        "limit",
        "more than 50 task runs",
        """
  - step: start
    tool:
      - a: {kind: noop, spec: {policy: {rules: [{else: {then: {do: jump, to: a}}}]}}}
""",
    ),
    "ctx-conflict": (
        "loop",
        "iteration 1 may not write ctx.x",
        """
  - step: start
    loop: {in: [1, 2], iterator: n, spec: {mode: parallel}}
    tool:
      - a: {kind: noop, spec: {policy: {rules: [{else: {then: {set_ctx: {x: "{{ iter.n }}"}}}}]}}}
""",
    ),
    "no-json": (
        "result",
        "",
        """
  - step: start
    tool:
      - a: {kind: python, code: "result = float('nan')"}
""",
    ),
    "killed-child": (
        "python",
        "",
        """
  - step: start
    tool:
      - a: {kind: python, code: "import os\\nos.kill(os.getpid(), 9)"}
""",
    ),
    "arc-args": (
        "template",
        "`args` of arc 1 to step 'next'",
        """
  - step: start
    next: {arcs: [{step: next, args: {x: "{{ ctx.nowhere }}"}}]}
  - step: next
    tool: [{a: {kind: noop}}]
""",
    ),
}
"""What is wrong → kind and words of the error, and the workflow."""

LIMITED = """executor: {kind: local, spec: {policy: {limits: {max_task_runs: 50}}}}
workflow:"""
