"""Which boxes stand above which: cycles opened, then the longest path from the top."""

from collections.abc import Sequence

Pair = tuple[int, int]


def backward(count: int, pairs: Sequence[Pair], first: int) -> frozenset[int]:
    """The numbers of the pairs that close a cycle, walking from `first` in document order."""
    leaving: list[list[int]] = [[] for _ in range(count)]
    for number, (source, _) in enumerate(pairs):
        leaving[source].append(number)
    back: set[int] = set()
    open_now, done = [False] * count, [False] * count
    for start in (first, *range(count)):
        stack = [] if done[start] else [(start, iter(leaving[start]))]
        open_now[start] = bool(stack)
        while stack:
            node, numbers = stack[-1]
            for number in numbers:
                target = pairs[number][1]
                if open_now[target]:
                    back.add(number)
                elif not done[target]:
                    open_now[target] = True
                    stack.append((target, iter(leaving[target])))
                    break
            else:
                stack.pop()
                open_now[node], done[node] = False, True
    return frozenset(back)


def ranks(count: int, pairs: Sequence[Pair], first: int) -> list[int]:
    """The rank of each box when every pair leads down; `pairs` must hold no cycle."""
    leaving: list[list[int]] = [[] for _ in range(count)]
    awaited = [0] * count
    for source, target in pairs:
        leaving[source].append(target)
        awaited[target] += 1
    rank = [0] * count
    ready = [node for node in range(count) if not awaited[node]]
    loose = [node for node in ready if node != first and leaving[node]]
    while ready:
        node = ready.pop()
        for target in leaving[node]:
            rank[target] = max(rank[target], rank[node] + 1)
            awaited[target] -= 1
            if not awaited[target]:
                ready.append(target)
    for node in loose:  # a box that nothing leads to stands right above what it leads to
        rank[node] = min(rank[target] for target in leaving[node]) - 1
    return rank
