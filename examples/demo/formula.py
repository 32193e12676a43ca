"""Body composition from bio-impedance.

Fat-free mass is the "Geneva equation": U. G. Kyle, L. Genton, L. Karsegard, D. O. Slosman, C. Pichard, "Single prediction
equation for bioelectrical impedance analysis in adults aged 20–94 years", Nutrition 17 (3), 2001, pages 248–253:

    fat-free mass = −4.104 + 0.518 · height² / resistance + 0.231 · weight + 0.130 · reactance + 4.229 (men only)

in kg, cm and Ω, measured at 50 kHz. It was found with 343 healthy adults with a body mass index of 17.0 to 33.8 kg/m²; its
standard error is 1.72 kg. This is an example of a computation in a pipeline, not medical advice.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import Column

FREQUENCY_KHZ = 50.0
BODY_MASS_INDEX_RANGE = (17.0, 33.8)

# The same arithmetic for a number and for a column of numbers.
Number = TypeVar("Number", float, "Column")


def fat_free_mass_kg(
    *, height_cm: Number, weight_kg: Number, resistance_ohm: Number, reactance_ohm: Number, is_male: Number
) -> Number:
    """`is_male` is 1 or 0."""
    resistance_index = height_cm * height_cm / resistance_ohm
    return resistance_index * 0.518 + weight_kg * 0.231 + reactance_ohm * 0.130 + is_male * 4.229 - 4.104


def fat_percent(*, fat_free_mass_kg: Number, weight_kg: Number) -> Number:
    return (weight_kg - fat_free_mass_kg) / weight_kg * 100.0


def phase_angle_degrees(*, resistance_ohm: float, reactance_ohm: float) -> float:
    return math.degrees(math.atan2(reactance_ohm, resistance_ohm))
