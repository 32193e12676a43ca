"""Values computed by hand from the published coefficients."""

import pytest

from examples.demo.formula import fat_free_mass_kg, fat_percent, phase_angle_degrees


def test_the_fat_free_mass_of_a_man() -> None:
    # −4.104 + 0.518 · 180² / 500 + 0.231 · 80 + 0.130 · 60 + 4.229
    found = fat_free_mass_kg(
        height_cm=180.0, weight_kg=80.0, resistance_ohm=500.0, reactance_ohm=60.0, is_male=1.0
    )
    assert found == pytest.approx(-4.104 + 33.5664 + 18.48 + 7.8 + 4.229)


def test_the_fat_free_mass_of_a_woman() -> None:
    found = fat_free_mass_kg(
        height_cm=165.0, weight_kg=60.0, resistance_ohm=600.0, reactance_ohm=60.0, is_male=0.0
    )
    assert found == pytest.approx(-4.104 + 23.50425 + 13.86 + 7.8)


def test_the_rest_of_a_body_is_fat() -> None:
    assert fat_percent(fat_free_mass_kg=60.0, weight_kg=80.0) == pytest.approx(25.0)


def test_the_phase_angle_is_that_of_the_impedance() -> None:
    assert phase_angle_degrees(resistance_ohm=500.0, reactance_ohm=500.0) == pytest.approx(45.0)
    assert phase_angle_degrees(resistance_ohm=500.0, reactance_ohm=60.0) == pytest.approx(6.843, abs=0.001)
