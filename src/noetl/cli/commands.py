"""Which commands there are. `noetl --help` reads this table and imports none of them."""


class Entry:
    """Where a command lives (`module:attribute`) and what it does, in one line."""

    def __init__(self, target: str, summary: str) -> None:
        self.target = target
        self.summary = summary


COMMANDS: dict[str, Entry] = {
    "run": Entry("noetl.cli.run:run", "Run a playbook in this process."),
    "register": Entry("noetl.cli.register:register", "Register playbooks in the catalog."),
    "catalog": Entry("noetl.cli.catalog:catalog", "List registered playbooks, or print one."),
    "execute": Entry("noetl.cli.execute:execute", "Execute a registered playbook."),
    "schedule": Entry("noetl.cli.schedule:schedule", "Start playbooks by the clock."),
    "trigger": Entry("noetl.cli.trigger:trigger", "Inspect and manage what starts executions."),
    "test": Entry("noetl.cli.test:test", "Run the tests of playbooks with prepared outcomes."),
    "status": Entry("noetl.cli.status:status", "Show the status of an execution."),
    "list": Entry("noetl.cli.listing:listing", "List executions, the newest first."),
    "explain": Entry("noetl.cli.explain:explain", "Explain why an execution failed or waits."),
    "view": Entry("noetl.cli.view:view", "Open an execution in the browser."),
    "events": Entry("noetl.cli.events:events", "Print the log of an execution."),
    "logs": Entry("noetl.cli.logs:logs", "Print the output of the tasks of an execution."),
    "export": Entry("noetl.cli.export:export", "Export events for other programs."),
    "prune": Entry("noetl.cli.prune:prune_command", "Remove ended executions, archived or not."),
    "replay": Entry("noetl.cli.replay:replay", "Rebuild the state from the log and verify it."),
    "cancel": Entry("noetl.cli.orders:cancel", "Cancel an execution."),
    "pause": Entry("noetl.cli.orders:pause", "Pause an execution."),
    "resume": Entry("noetl.cli.orders:resume", "Continue an interrupted or paused execution."),
    "signal": Entry("noetl.cli.answers:signal", "Send a signal to an execution."),
    "approve": Entry("noetl.cli.answers:approve", "Approve what an execution waits for."),
    "reject": Entry("noetl.cli.answers:reject", "Reject what an execution waits for."),
    "waiting": Entry("noetl.cli.waiting:waiting", "List what waits for people."),
    "restart": Entry("noetl.cli.restart:restart", "Run what failed again, or from a step on."),
    "diff": Entry("noetl.cli.diff:diff", "Show where two executions parted."),
    "cache": Entry("noetl.cli.cache:cache", "List and clear kept outcomes."),
    "audit": Entry("noetl.cli.audit:audit", "Show who ordered what."),
    "credential": Entry("noetl.cli.credential:credential", "Register credentials, encrypted."),
    "server": Entry(
        "noetl.cli.server:server", "Start, stop and inspect a server; manage its tokens."
    ),
    "worker": Entry("noetl.cli.worker:worker", "Start, stop and inspect workers."),
    "pool": Entry("noetl.cli.pool:pool", "Set how much runs at once in a pool of workers."),
    "up": Entry("noetl.cli.up:up", "Start a server and workers to try things out."),
    "down": Entry("noetl.cli.up:down", "Stop what `noetl up` started."),
    "context": Entry("noetl.cli.context:context", "Name servers and choose the one to use."),
    "doctor": Entry("noetl.cli.doctor:doctor", "Print every setting and check the installation."),
    "validate": Entry("noetl.cli.validate:validate", "Check playbooks and show every error."),
    "migrate": Entry(
        "noetl.cli.migrate:migrate_command", "Translate a playbook of an older dialect."
    ),
    "graph": Entry("noetl.cli.graph.command:graph", "Draw a playbook as Mermaid or SVG."),
    "schema": Entry("noetl.cli.schema:schema", "Print the JSON Schema of playbooks for editors."),
    "init": Entry(
        "noetl.cli.init:init", "Create a project: a playbook, its test, editor settings."
    ),
    "dev": Entry("noetl.cli.dev:dev", "Check a playbook and run its tests on every save."),
    "lsp": Entry("noetl.cli.lsp:lsp", "Language server for editors."),
    "mcp": Entry("noetl.cli.mcp.command:mcp", "MCP server for AI agents."),
    "completion": Entry("noetl.cli.completion:completion", "Print a shell completion script."),
}
