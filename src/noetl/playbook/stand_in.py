"""The playbook of a request that names none which can run: its log proves itself like any other."""

from noetl.playbook.plan import digest_of

TEXT = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: refused, path: refused }
workflow:
  - step: start
    tool:
      - nothing: { kind: noop }
"""

DIGEST = digest_of(TEXT)
