"""A realistic playbook of any length: every template in it differs from the others."""

from collections.abc import Iterator

HEAD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: generated
  path: bench/generated
workload:
  base_url: https://example.org
  page_size: 100
  regions: [north, south, east, west]
workflow:
"""

STEP = """\
  - step: step_{n}
    desc: Fetch part {n}, keep what is new, count it
    spec:
      policy:
        admit:
          rules:
            - when: "{{{{ ctx.part_{n}_allowed | default(true) and args.budget_{n} > {n} }}}}"
              then: {{ allow: true }}
            - else:
                then: {{ allow: false }}
    loop:
      in: "{{{{ workload.regions | reject('equalto', 'none_{n}') | list }}}}"
      iterator: region
      spec:
        mode: parallel
        max_in_flight: {flight}
    tool:
      - fetch:
          kind: http
          method: GET
          headers:
            accept: application/json
            accept-language: en
            user-agent: noetl-bench
          follow_redirects: true
          url: "{{{{ workload.base_url }}}}/v{n}/parts/{{{{ iter.region }}}}"
          params:
            size: "{{{{ workload.page_size + {n} }}}}"
            cursor: "{{{{ iter.cursor_{n} | default('') }}}}"
          spec:
            timeout:
              connect: 5
              read: 20
              total: 30
            client_retries: 0
            resources:
              cpu: 1
              memory: 256
            policy:
              rules:
                - when: "{{{{ outcome.status == 'error' and outcome.http.status in {codes} }}}}"
                  then: {{ do: retry, attempts: 5, backoff: exponential, delay: 0.5 }}
                - when: "{{{{ outcome.status == 'error' }}}}"
                  then: {{ do: fail }}
                - else:
                    then:
                      do: continue
                      set_iter:
                        cursor_{n}: "{{{{ outcome.result.data.next_{n} | default('') }}}}"
      - keep:
          kind: postgres
          auth: warehouse
          command: |
            -- one row per region and run; a later run replaces what an earlier one kept
            insert into part_{n} (
                region,
                body,
                kept_at,
                origin
            )
            values (
                %(region)s,
                %(body)s,
                now(),
                'generated'
            )
            on conflict (region) do update set
                body = excluded.body,
                kept_at = excluded.kept_at
          params:
            region: "{{{{ iter.region }}}}"
            body: "{{{{ _prev.data.rows_{n} | tojson }}}}"
      - count:
          kind: noop
          spec:
            policy:
              rules:
                - else:
                    then:
                      do: continue
                      set_iter:
                        count_{n}: "{{{{ iter.count_{n} | default(0) + 1 }}}}"
"""

ARCS = """\
    next:
      spec:
        mode: exclusive
      arcs:
        - step: step_{after}
          when: "{{{{ event.name == 'loop.done' and event.loop.done > {n} }}}}"
          args:
            budget_{after}: "{{{{ args.budget_{n} | default({n}) - 1 }}}}"
        - step: failed
          when: "{{{{ event.name == 'step.failed' and event.error.kind != 'part_{n}' }}}}"
"""

TAIL = """\
  - step: failed
    tool:
      - tell:
          kind: http
          method: POST
          url: "{{ workload.base_url }}/alerts"
          body:
            execution: "{{ execution_id }}"
"""


def generate(lines: int = 5_000, salt: int = 0) -> str:
    """A valid playbook of at least so many lines; another salt gives other templates."""
    return "".join(parts(lines, salt * 1_000))


def parts(lines: int, first: int) -> Iterator[str]:
    written = HEAD.count("\n") + TAIL.count("\n")
    yield HEAD
    number = first
    while True:
        step = STEP.format(n=number, flight=2 + number % 7, codes=[429, 500 + number])
        arcs = ARCS.format(n=number, after=number + 1)
        written += step.count("\n") + arcs.count("\n")
        yield step
        if written >= lines:
            break
        yield arcs
        number += 1
    yield ARCS.format(n=number, after=first)
    yield TAIL
