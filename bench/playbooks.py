"""The playbooks that the benches of the engine run."""

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: bench, path: bench}\n"
NOOP = "    tool:\n      - rest: {kind: noop}\n"


def chain(length: int, task: str = NOOP) -> str:
    """Steps in a row, each with one task."""
    steps = []
    for number in range(length):
        arc = f"    next:\n      arcs:\n        - step: s{number + 1}\n"
        steps.append(f"  - step: s{number}\n{task}{arc if number + 1 < length else ''}")
    return f"{HEAD}workflow:\n{''.join(steps)}"


def turns(count: int) -> str:
    """One step that runs `count` times: an arc leads back to it."""
    return f"""{HEAD}executor: {{spec: {{policy: {{limits: {{max_step_runs: {count + 1}}}}}}}}}
workflow:
  - step: turn
    tool:
      - count:
          kind: noop
          spec:
            policy:
              rules:
                - else:
                    then:
                      do: continue
                      set_ctx: {{n: "{{{{ ctx.n | default(0) + 1 }}}}"}}
    next:
      arcs:
        - step: turn
          when: "{{{{ ctx.n < {count} }}}}"
"""


def loop(mode: str, in_flight: int = 100) -> str:
    """A loop of `noop` over `workload.numbers`."""
    return f"""{HEAD}workflow:
  - step: each
    loop:
      in: "{{{{ workload.numbers }}}}"
      iterator: number
      spec: {{mode: {mode}, max_in_flight: {in_flight}}}
{NOOP}"""


FIBONACCI = """    tool:
      - fib:
          kind: python
          args: {n: 10}
          code: |
            def fibonacci(n):
                return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
            result = fibonacci(n)
"""
