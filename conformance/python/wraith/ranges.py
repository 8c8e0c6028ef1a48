"""Sets of numbers, kept as ranges."""


class Ranges:
    """Disjoint, sorted, half-open ranges that do not touch each other."""

    def __init__(self):
        self.all = []

    def __contains__(self, number):
        return any(start <= number < end for start, end in self.all)

    def __bool__(self):
        return bool(self.all)

    def add(self, start, end):
        if start >= end:
            return
        apart = [part for part in self.all if part[1] < start or part[0] > end]
        joined = [part for part in self.all if part not in apart]
        start = min([start, *(part[0] for part in joined)])
        end = max([end, *(part[1] for part in joined)])
        self.all = sorted([*apart, (start, end)])

    def remove(self, start, end):
        left = []
        for low, high in self.all:
            left += [(low, min(high, start)), (max(low, end), high)]
        self.all = [(low, high) for low, high in left if low < high]
