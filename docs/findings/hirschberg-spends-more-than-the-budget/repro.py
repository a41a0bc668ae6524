"""The solver dp_knapsack_sliding_hirschberg gives each half of its items one unit more than there is: what it saves
exceeds the budget.

Pass partition, PyTorch 2.15.0+cu132; breaks partition/budget-respected.
Needs torch alone. Exit status 1 if the failure shows, 0 if not, 2 if this torch has not what it needs.

The solver alone, on sizes in units of 1/10000 of memory: 1000 items and a budget of 0.2. The solver dp keeps to it.
"""

import random
import sys

try:
    from torch._functorch._activation_checkpointing.knapsack import dp_knapsack, dp_knapsack_sliding_hirschberg
except ImportError as error:
    print(f"this torch has no such solver: {error}")
    sys.exit(2)

random.seed(0)
sizes = [random.randint(1, 19) / 10000 for _ in range(1000)]
runtimes = [random.random() for _ in sizes]
BUDGET = 0.2
spent = {}
for solver in (dp_knapsack, dp_knapsack_sliding_hirschberg):
    _, saved, _ = solver(sizes, runtimes, BUDGET)
    spent[solver.__name__] = sum(sizes[index] for index in saved)
dp, hirschberg = spent.values()
if dp <= BUDGET + 1e-6 < hirschberg:
    print(f"FAILS: of a budget of {BUDGET} it spends {hirschberg:.4f}, and dp_knapsack {dp:.4f}")
    sys.exit(1)
print("the failure does not show")
