"""What every form of the pipeline asks of a measurement."""

FIELDS = ("worker", "at", "frequency_khz", "resistance_ohm", "reactance_ohm")
# A whole body, hand to foot, cannot be outside of these: an electrode is loose, or the cables are swapped.
RANGES = {"frequency_khz": (1, 1000), "resistance_ohm": (150, 1500), "reactance_ohm": (5, 300)}
