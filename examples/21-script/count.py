"""Counts the words of a text: JSON comes in, JSON goes out."""

import json
import sys
from collections import Counter

least = int(sys.argv[sys.argv.index("--least") + 1])
words = Counter(json.load(sys.stdin)["text"].split())
print(json.dumps({word: count for word, count in sorted(words.items()) if count >= least}))
