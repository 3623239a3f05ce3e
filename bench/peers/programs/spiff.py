"""SpiffWorkflow: BPMN in memory; nothing is written anywhere."""

import io
from itertools import pairwise

from lxml import etree
from SpiffWorkflow.bpmn.parser import BpmnParser
from SpiffWorkflow.bpmn.workflow import BpmnWorkflow

from bench.peers.programs.telling import Order, asked, main

HEAD = (
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" '
    'targetNamespace="bench"><process id="bench" isExecutable="true">'
)
FIB = (
    "def fibonacci(n, again):\n"
    "    return n if n &lt; 2 else again(n - 1, again) + again(n - 2, again)"
    "\nx = fibonacci(10, fibonacci)"
)
ORDER = asked()


def flow(*pairs: tuple[str, str]) -> str:
    return "".join(
        f'<sequenceFlow id="f{n}" sourceRef="{source}" targetRef="{target}"/>'
        for n, (source, target) in enumerate(pairs)
    )


def spec(body: str) -> BpmnWorkflow:
    parser = BpmnParser()
    document = f'{HEAD}<startEvent id="a"/>{body}<endEvent id="z"/></process></definitions>'
    parser.add_bpmn_xml(etree.parse(io.StringIO(document)))
    return parser.get_spec("bench")


def chain(count: int, script: str = "x = 1") -> BpmnWorkflow:
    names = [f"s{n}" for n in range(count)]
    tasks = "".join(f'<scriptTask id="{n}"><script>{script}</script></scriptTask>' for n in names)
    places = ["a", *names, "z"]
    return spec(tasks + flow(*pairwise(places)))


def spread(count: int) -> BpmnWorkflow:
    names = [f"s{n}" for n in range(count)]
    tasks = "".join(f'<scriptTask id="{n}"><script>x = 1</script></scriptTask>' for n in names)
    gates = '<parallelGateway id="split"/><parallelGateway id="join"/>'
    out = [("split", name) for name in names] + [(name, "join") for name in names]
    return spec(tasks + gates + flow(("a", "split"), *out, ("join", "z")))


def run(what: BpmnWorkflow) -> None:
    workflow = BpmnWorkflow(what)
    workflow.do_engine_steps(did_complete_task=lambda _: ORDER.one())
    assert workflow.completed


def timed(order: Order, what: BpmnWorkflow, repeats: int = 1) -> None:
    run(chain(1))
    order.begin()
    for _ in range(repeats):
        run(what)
    order.end()


def first(order: Order) -> None:
    run(chain(1))
    order.end()


def beside_blocked(order: Order) -> None:
    """Workflows of this process that wait for a manual task."""
    waiting = spec('<manualTask id="m"/>' + flow(("a", "m"), ("m", "z")))
    blocked = [BpmnWorkflow(waiting) for _ in range(order.count)]
    for one in blocked:
        one.do_engine_steps()
    order.begin()
    run(chain(1))
    order.end(blocked=len(blocked))


if __name__ == "__main__":
    main(
        {
            "W1": lambda order: timed(order, chain(order.count)),
            "W2": lambda order: timed(order, spread(order.count)),
            "W3": lambda order: timed(order, chain(5), order.count),
            "W4": lambda order: timed(order, chain(order.count, FIB)),
            "W5": first,
            "W7": lambda order: timed(order, chain(order.count)),
            "W9": beside_blocked,
        },
        ORDER,
    )
